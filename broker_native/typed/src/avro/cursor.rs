//! The bytes of a datum, read from the front, as Avro's binary encoding has them.
use super::schema::{Id, Kind, Schema};
use crate::damage::Damage;

/// How deep a datum may be nested in parts that are passed over: a type that holds itself has no bound of its own.
pub const DEPTH_MAX: usize = 200;

/// What is left of a datum.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a>(pub &'a [u8]);

pub(super) fn broken() -> Damage {
    Damage::whole("is no datum of its Avro schema")
}

impl<'a> Cursor<'a> {
    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(broken)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A `boolean`.
    #[inline]
    pub fn boolean(&mut self) -> Result<bool, Damage> {
        Ok(self.array::<1>()? == [1])
    }

    /// An `int`. Bits beyond its 32 are dropped, as Java's decoder does.
    #[inline]
    pub fn int(&mut self) -> Result<i32, Damage> {
        let zigzag = self.varint(5)? as u32;
        Ok((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    }

    /// A `long`.
    #[inline]
    pub fn long(&mut self) -> Result<i64, Damage> {
        let zigzag = self.varint(10)?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    #[inline]
    fn varint(&mut self, most: usize) -> Result<u64, Damage> {
        let mut value = 0u64;
        for (index, byte) in self.0.iter().take(most).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = self.0.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(broken())
    }

    /// `bytes`, or the bytes of a `string`.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = usize::try_from(self.long()?).map_err(|_| broken())?;
        self.take(length)
    }

    /// The number of a union's branch or an enum's symbol.
    #[inline]
    pub fn index(&mut self) -> Result<usize, Damage> {
        usize::try_from(self.int()?).map_err(|_| broken())
    }

    /// How many items the next block of an array or map has, none at its end; and how many bytes, where they are said.
    #[inline]
    pub fn block(&mut self) -> Result<(usize, Option<usize>), Damage> {
        let count = self.long()?;
        let size = match count < 0 {
            true => Some(usize::try_from(self.long()?).map_err(|_| broken())?),
            false => None,
        };
        let count = usize::try_from(count.unsigned_abs()).map_err(|_| broken())?;
        Ok((count, size))
    }

    /// Passes over a value of a type.
    pub fn skip(&mut self, schema: &Schema, id: Id, depth: usize) -> Result<(), Damage> {
        if schema.least_bytes(id) == 0 {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(Damage::whole("is nested too deep"));
        }
        match &schema.get(id).kind {
            Kind::Null => {}
            Kind::Boolean => drop(self.array::<1>()?),
            Kind::Int | Kind::Enum(..) => drop(self.int()?),
            Kind::Long => drop(self.long()?),
            Kind::Float => drop(self.array::<4>()?),
            Kind::Double => drop(self.array::<8>()?),
            Kind::Bytes | Kind::String => drop(self.bytes()?),
            Kind::Fixed(_, size) => drop(self.take(*size)?),
            Kind::Array(items) => self.skip_blocks(schema, *items, false, depth)?,
            Kind::Map(values) => self.skip_blocks(schema, *values, true, depth)?,
            Kind::Union(branches) => {
                let branch = branches.get(self.index()?).ok_or_else(broken)?;
                self.skip(schema, *branch, depth + 1)?;
            }
            Kind::Record(_, fields) => {
                for field in fields {
                    self.skip(schema, field.kind, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn skip_blocks(&mut self, schema: &Schema, item: Id, keyed: bool, depth: usize) -> Result<(), Damage> {
        // Of items without bytes there may be 2^60.
        let is_empty = !keyed && schema.least_bytes(item) == 0;
        loop {
            match self.block()? {
                (0, _) => return Ok(()),
                (_, Some(size)) => drop(self.take(size)?),
                _ if is_empty => {}
                (count, None) => {
                    for _ in 0..count {
                        if keyed {
                            self.bytes()?;
                        }
                        self.skip(schema, item, depth + 1)?;
                    }
                }
            }
        }
    }
}
