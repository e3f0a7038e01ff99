//! The bytes of a message, read from the front, as Protobuf's Java library reads them.
use crate::damage::Damage;

/// How deep groups may be nested that are passed over.
pub const DEPTH_MAX: usize = 100;

/// How the bytes behind a tag are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A number of one to ten bytes.
    Varint,
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
    /// A length and as many bytes.
    Bytes,
    /// Everything up to the tag that ends it.
    Group,
    /// The end of a group.
    EndGroup,
}

pub(super) fn broken() -> Damage {
    Damage::whole("is no message of Protobuf")
}

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub struct Wire<'a>(pub &'a [u8]);

impl<'a> Wire<'a> {
    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number of one to ten bytes; bits beyond 64 are dropped.
    ///
    /// # Errors
    /// When it does not end.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Damage> {
        if let Some((first, rest)) = self.0.split_first()
            && *first < 0x80
        {
            self.0 = rest;
            return Ok(u64::from(*first));
        }
        let mut value = 0_u64;
        for (index, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = self.0.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(broken())
    }

    /// The number of the next field, and how it is laid out.
    ///
    /// # Errors
    /// When there is no such field.
    #[inline]
    pub fn tag(&mut self) -> Result<(u32, Layout), Damage> {
        let tag = self.varint()? as u32;
        let layout = match tag & 7 {
            0 => Layout::Varint,
            1 => Layout::Fixed64,
            2 => Layout::Bytes,
            3 => Layout::Group,
            4 => Layout::EndGroup,
            5 => Layout::Fixed32,
            _ => return Err(broken()),
        };
        if tag >> 3 == 0 { Err(broken()) } else { Ok((tag >> 3, layout)) }
    }

    /// The next bytes as an array.
    ///
    /// # Errors
    /// When there are fewer.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// A length and as many bytes.
    ///
    /// # Errors
    /// When there are fewer.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let length = i32::try_from(self.varint()? as u32).map_err(|_| broken())?;
        let (taken, rest) = self.0.split_at_checked(length as usize).ok_or_else(broken)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Passes over what follows the tag of field `number`.
    ///
    /// # Errors
    /// When it does not end, or is nested too deep.
    #[inline]
    pub fn skip(&mut self, number: u32, layout: Layout) -> Result<(), Damage> {
        match layout {
            Layout::Varint => self.varint().map(drop),
            Layout::Fixed32 => self.array::<4>().map(drop),
            Layout::Fixed64 => self.array::<8>().map(drop),
            Layout::Bytes => self.bytes().map(drop),
            Layout::Group => self.skip_group(number),
            Layout::EndGroup => Err(broken()),
        }
    }

    /// Without recursion: what is nested is up to the record.
    fn skip_group(&mut self, number: u32) -> Result<(), Damage> {
        let mut open = vec![number];
        while let Some(inner) = open.last() {
            let (number, layout) = self.tag()?;
            match layout {
                Layout::EndGroup if number == *inner => drop(open.pop()),
                Layout::Group if open.len() < DEPTH_MAX => open.push(number),
                Layout::Group => return Err(Damage::whole("is nested too deep")),
                other => self.skip(number, other)?,
            }
        }
        Ok(())
    }
}
