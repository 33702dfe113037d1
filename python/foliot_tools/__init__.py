"""What the demo, the tests and the measurements share: starting a server,
writing models, reading logs."""

import os

# onnxruntime reports what it is used for unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
