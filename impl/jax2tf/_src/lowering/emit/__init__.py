"""What several rules share: functions that make ops, and that register nothing."""
