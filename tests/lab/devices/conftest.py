"""The worker registers a device with torch when it is imported: not in the process of the tests."""

collect_ignore = ["second_device.py", "steps.py"]
