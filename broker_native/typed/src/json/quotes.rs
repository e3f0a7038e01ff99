//! Jackson lets texts and names stand in single quotes.

/// The same JSON with double quotes; `None` when there is no single quote that would open a text.
pub(super) fn doubled(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len() + 16);
    let mut bytes = json.iter().copied();
    let mut found = false;
    while let Some(open) = bytes.next() {
        if open == b'"' {
            out.push(open);
            while let Some(byte) = bytes.next() {
                out.push(byte);
                match byte {
                    b'\\' => out.extend(bytes.next()),
                    b'"' => break,
                    _ => {}
                }
            }
        } else if open == b'\'' {
            found = true;
            out.push(b'"');
            while let Some(byte) = bytes.next() {
                match byte {
                    b'\'' => {
                        out.push(b'"');
                        break;
                    }
                    b'"' => out.extend_from_slice(b"\\\""),
                    b'\\' => match bytes.next() {
                        // JSON has no such escape.
                        Some(b'\'') => out.push(b'\''),
                        next => {
                            out.push(byte);
                            out.extend(next);
                        }
                    },
                    _ => out.push(byte),
                }
            }
        } else {
            out.push(open);
        }
    }
    found.then_some(out)
}
