//! Tests that compare times, CPU time or losses with what the machine did: nothing else may run beside them.

mod advise_pairs;
mod critical_path;
mod pool;
mod pressure;
mod scopes;
mod sections_cpu;
mod split;
mod storms;
mod waits;
