use crate::tls::name::rfc2253;

#[test]
fn names_are_written_as_java_writes_them() {
    let lines = include_str!("../../../tests/fixtures/names.txt").lines();
    let mut seen = 0;
    for line in lines {
        let (encoded, expected) = line.split_once(' ').unwrap();
        let bytes: Vec<u8> = (0..encoded.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&encoded[at..at + 2], 16).unwrap())
            .collect();
        let expected: String = serde_json::from_str(expected).unwrap();
        assert_eq!(rfc2253(&bytes).as_deref(), Some(expected.as_str()), "{encoded}");
        seen += 1;
    }
    assert_eq!(seen, 17);
}
