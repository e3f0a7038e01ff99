"""The cluster as values, and the decisions that change it: pure, except `store`, which stores them."""
