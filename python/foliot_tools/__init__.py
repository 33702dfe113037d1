"""What the demo, the tests and the measurements share: starting a server,
writing models, reading logs."""
