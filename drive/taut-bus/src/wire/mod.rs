//! Time on the wire, from a frame's bytes to microseconds. The budget sums these; a simulated bus waits for them.

pub mod canfd;
pub mod rs485;
pub mod spi;
