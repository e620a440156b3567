//! stub

pub mod kernel;
