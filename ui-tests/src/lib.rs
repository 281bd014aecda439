//! Compile-time behaviour of the attributes.
