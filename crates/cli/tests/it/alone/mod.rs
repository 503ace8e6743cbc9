//! Tests that compare times, CPU time or losses with what the machine did: nothing else may run beside them.

mod pool;
mod root;
mod sections_cpu;
mod storms;
