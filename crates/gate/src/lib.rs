//! Budgets, comparisons and verdicts over the figures of recordings.
