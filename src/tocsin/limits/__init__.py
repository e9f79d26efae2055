"""Compare requests with the machine, with earlier jobs and with themselves: rules, nothing learned."""
