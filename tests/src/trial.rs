//! Two inspectors beside one control plane, load, and what has to hold whatever fails: watched without a pause, from outside.

mod load;
mod prober;
mod replicas;
mod witness;

pub use load::Load;
pub use prober::{Probed, Prober};
pub use replicas::Replicas;
pub use witness::{Seen, Witness};
