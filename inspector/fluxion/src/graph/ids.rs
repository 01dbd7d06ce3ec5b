//! Small integer ids of the elements of a graph. They are only valid for the graph that created
//! them.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the arena.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a position in an arena.
            ///
            /// # Panics
            /// If the position needs more than 32 bits; arenas are limited to less.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("arenas hold fewer than 2^32 entries"))
            }
        }
    };
}

id!(
    /// A vertex; ids increase in order of creation and are never reused.
    VertexId
);
id!(
    /// An edge; ids increase in order of creation and are never reused.
    EdgeId
);
id!(
    /// An interned string.
    Sym
);
id!(
    /// An interned path.
    PathId
);
id!(
    /// A resource type; ids are assigned in order of first use.
    TypeId
);

/// A subsystem; [`Subsystem::CONTAINMENT`] always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subsystem(pub u8);

impl Subsystem {
    /// The containment subsystem, which every graph has.
    pub const CONTAINMENT: Self = Self(0);
}
