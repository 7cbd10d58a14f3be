"""Short-lived processes: validate, describe, fence, read and change offsets."""
