"""The broker process: its settings, the control loop over the native server, and the in-process handle."""
