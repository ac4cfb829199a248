//! Fabrics that lose nothing: on virtual time, and on real interfaces.

mod copies;
mod deadlock;
mod incast;
mod live;
mod network;
mod storm;

use crate::lossless_lab;
use crate::switch::network as namespace;
