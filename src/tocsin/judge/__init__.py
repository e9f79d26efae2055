"""Findings → one Verdict: plug-ins, policy, cases."""
