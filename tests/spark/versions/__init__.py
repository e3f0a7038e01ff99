"""What works on which version of Spark: scenarios, and the environments of older versions to run them in."""
