//! The macro that makes the structs of records, and descriptions of how they lie in memory.

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident as $c_name:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
            #[repr(C)]
            pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
        )*

        $(impl $name {
            /// The memory layout.
            pub const LAYOUT: Layout = Layout {
                c_name: $c_name,
                size: size_of::<$name>(),
                fields: &[$(Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!($name, $field),
                    size: {
                        const fn size_of_field<T>(_: fn(&$name) -> &T) -> usize { size_of::<T>() }
                        size_of_field(|record| &record.$field)
                    },
                },)*],
            };
        })*

        /// Every record's layout.
        pub const LAYOUTS: &[Layout] = &[$($name::LAYOUT,)*];
    };
}
