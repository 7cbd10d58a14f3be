"""Failed records of a sink task: dead letter queue and errant record reports."""
