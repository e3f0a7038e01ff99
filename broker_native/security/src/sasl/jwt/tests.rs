use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding,
    RsaKeyPair, RsaPublicKeyComponents,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW_S: i64 = 1_700_000_000;
const NOW_MS: i64 = NOW_S * 1_000;

/// Somebody who makes tokens.
struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    fn new() -> Self {
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        Self { rsa, ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap() }
    }

    fn jwks(&self) -> Value {
        let rsa = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public_key());
        let point = self.ec.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "kid": "rsa", "use": "sig", "n": base64(&rsa.n), "e": base64(&rsa.e)},
            {"kty": "EC", "kid": "ec", "crv": "P-256", "x": base64(&point[1..33]), "y": base64(&point[33..])},
            {"kty": "RSA", "kid": "sealed", "use": "enc", "n": base64(&rsa.n), "e": base64(&rsa.e)},
            {"kty": "RSA", "kid": "only-ps", "alg": "PS256", "n": base64(&rsa.n), "e": base64(&rsa.e)},
            {"kty": "oct", "kid": "shared", "k": base64(b"a shared secret")},
            {"kty": "of the future"},
            "not even an object",
        ]})
    }

    fn validator(&self, rules: TokenRules) -> TokenValidator {
        TokenValidator::new(&self.jwks().to_string(), rules).unwrap()
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        self.signed(header, claims.to_string().as_bytes())
    }

    /// A token whose claims are any bytes.
    fn signed(&self, header: &Value, claims: &[u8]) -> String {
        let message = format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims));
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(encoding, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
            signature
        };
        let signature = match header["alg"].as_str() {
            Some("RS256") => rsa(&RSA_PKCS1_SHA256),
            Some("PS256") => rsa(&RSA_PSS_SHA256),
            Some("ES256") => {
                self.ec.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{message}.{}", base64(&signature))
    }
}

fn claims() -> Value {
    json!({"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 600, "iss": "https://issuer", "scope": "kafka"})
}

fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

#[test]
fn a_token_signed_by_a_key_of_the_jwks_is_valid_until_it_expires() {
    let issuer = Issuer::new();
    let validator = issuer.validator(TokenRules::default());
    for header in [
        json!({"alg": "RS256", "kid": "rsa", "typ": "JWT"}),
        json!({"alg": "PS256", "kid": "rsa"}),
        json!({"alg": "PS256", "kid": "only-ps"}),
        json!({"alg": "ES256", "kid": "ec"}),
        json!({"alg": "ES256"}),
    ] {
        let token = validator.validate(&issuer.token(&header, &claims()), NOW_MS).unwrap();
        assert_eq!(token, Token { subject: "alice".into(), expires_ms: NOW_MS + 600_000 }, "{header}");
    }
}

#[test]
fn what_a_token_says_of_its_algorithm_is_not_believed() {
    let issuer = Issuer::new();
    let validator = issuer.validator(TokenRules::default());
    let refused = |header: Value| validator.validate(&issuer.token(&header, &claims()), NOW_MS).unwrap_err();
    for name in ["none", "None", "NONE", "HS256", "HS512", "", "RS256 ", "ES512", "dir"] {
        assert_eq!(refused(json!({"alg": name, "kid": "rsa"})), TokenError::Algorithm(name.into()));
    }
    // The public key as an HMAC's secret, and a shared secret that a JWKS should not have.
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(issuer.rsa.public_key()).n;
    for (kid, secret) in [("rsa", public.as_slice()), ("shared", b"a shared secret")] {
        let header = json!({"alg": "HS256", "kid": kid}).to_string();
        let message = format!("{}.{}", base64(header.as_bytes()), base64(claims().to_string().as_bytes()));
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
        let signature = aws_lc_rs::hmac::sign(&key, message.as_bytes());
        let token = format!("{message}.{}", base64(signature.as_ref()));
        assert_eq!(validator.validate(&token, NOW_MS).unwrap_err(), TokenError::Algorithm("HS256".into()));
    }
    for (alg, kid) in
        [("RS256", "ec"), ("ES256", "rsa"), ("RS256", "only-ps"), ("RS256", "sealed"), ("RS256", "gone")]
    {
        assert_eq!(refused(json!({"alg": alg, "kid": kid})), TokenError::UnknownKey(kid.into()));
    }
    assert!(validator.has_missed() && !validator.has_missed());
    // Two keys could have made this one.
    assert_eq!(refused(json!({"alg": "PS256"})), TokenError::NoKey);
    assert!(matches!(refused(json!({"alg": "ES256", "kid": "ec", "crit": ["x"]})), TokenError::Malformed(_)));
}

#[test]
fn a_token_of_another_issuers_key_or_a_changed_one_is_refused() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    let validator = issuer.validator(TokenRules::default());
    for header in [json!({"alg": "RS256", "kid": "rsa"}), json!({"alg": "ES256", "kid": "ec"})] {
        assert_eq!(validator.validate(&other.token(&header, &claims()), NOW_MS), Err(TokenError::Signature));
        let token = issuer.token(&header, &claims());
        let (message, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = message.split_once('.').unwrap();
        let root = base64(with(json!({"sub": "root"})).to_string().as_bytes());
        for changed in
            [format!("{head}.{root}.{signature}"), format!("{message}."), format!("{message}.AAAA")]
        {
            assert_eq!(validator.validate(&changed, NOW_MS), Err(TokenError::Signature), "{changed}");
        }
    }
}

#[test]
fn times_are_judged_with_the_skew_that_is_allowed() {
    let issuer = Issuer::new();
    let validator = issuer.validator(TokenRules::default());
    let judged = |changes: Value| {
        let token = issuer.token(&json!({"alg": "ES256", "kid": "ec"}), &with(changes));
        validator.validate(&token, NOW_MS).map(|token| token.expires_ms)
    };
    assert_eq!(judged(json!({"exp": NOW_S - 29})), Ok(NOW_MS - 29_000));
    assert_eq!(judged(json!({"exp": NOW_S - 30})), Err(TokenError::Expired));
    assert_eq!(judged(json!({"nbf": NOW_S + 30, "iat": (NOW_S + 30) as f64})), Ok(NOW_MS + 600_000));
    assert_eq!(judged(json!({"nbf": NOW_S + 31})), Err(TokenError::TooEarly));
    assert_eq!(judged(json!({"iat": NOW_S + 31})), Err(TokenError::TooEarly));
    for missing in ["exp", "iat", "sub"] {
        assert_eq!(judged(json!({missing: null})), Err(TokenError::Claim(missing.into())));
    }
    for odd in [json!("soon"), json!(-1), json!(1e300), json!([1]), json!(true)] {
        assert_eq!(judged(json!({"exp": odd})), Err(TokenError::Claim("exp".into())));
    }
}

#[test]
fn issuer_audience_and_claim_names_are_those_of_the_settings() {
    let issuer = Issuer::new();
    let rules = TokenRules {
        audiences: vec!["pylog".into(), "kafka".into()],
        issuer: Some("https://issuer".into()),
        sub_claim_name: "client_id".into(),
        scope_claim_name: "scp".into(),
        ..TokenRules::default()
    };
    let validator = issuer.validator(rules);
    let judged = |changes: Value| {
        let token = issuer.token(&json!({"alg": "ES256", "kid": "ec"}), &with(changes));
        validator.validate(&token, NOW_MS).map(|token| token.subject)
    };
    let right = json!({"aud": "pylog", "client_id": " app ", "scp": ["a", "b"]});
    let and = |changes: Value| {
        let mut all = right.clone();
        all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        all
    };
    assert_eq!(judged(right.clone()), Ok("app".into()));
    assert_eq!(judged(and(json!({"aud": ["x", "kafka"]}))), Ok("app".into()));
    for audience in [json!("x"), json!(["x"]), json!([]), Value::Null, json!({"pylog": 1})] {
        assert_eq!(judged(and(json!({"aud": audience}))), Err(TokenError::Audience));
    }
    for other in [json!("https://issuer/"), Value::Null, json!(["https://issuer"])] {
        assert_eq!(judged(and(json!({"iss": other}))), Err(TokenError::Issuer));
    }
    for subject in [json!(""), json!("  "), json!(7), Value::Null] {
        assert_eq!(judged(and(json!({"client_id": subject}))), Err(TokenError::Claim("client_id".into())));
    }
    for scope in [json!(["a", "a"]), json!([""]), json!([1]), json!("")] {
        assert_eq!(judged(and(json!({"scp": scope}))), Err(TokenError::Claim("scp".into())));
    }
}

#[test]
fn a_token_for_somebody_is_refused_by_who_is_not_called_anything() {
    let issuer = Issuer::new();
    let validator = issuer.validator(TokenRules::default());
    let token = issuer.token(&json!({"alg": "ES256", "kid": "ec"}), &with(json!({"aud": "somebody"})));
    assert_eq!(validator.validate(&token, NOW_MS), Err(TokenError::Audience));
}

#[test]
fn a_jwks_without_a_key_for_signatures_is_refused() {
    let refused = |jwks: &str| TokenValidator::new(jwks, TokenRules::default()).unwrap_err();
    assert_eq!(refused(r#"{"keys": []}"#), JwksError::NoKey);
    assert_eq!(refused(r#"{"keys": [{"kty": "oct", "k": "AAAA"}]}"#), JwksError::NoKey);
    for text in ["", "[]", "{}", r#"{"keys": 1}"#, &" ".repeat(JWKS_MAX_BYTES + 1)] {
        assert!(matches!(refused(text), JwksError::NoJwks(_)));
    }
    let many = json!({"keys": vec![json!({}); JWKS_MAX_KEYS + 1]}).to_string();
    assert!(matches!(refused(&many), JwksError::NoJwks(_)));
}

/// A key made once: the properties below do not depend on it.
fn validator() -> TokenValidator {
    Issuer::new().validator(TokenRules::default())
}

/// JSON that is near to a token's parts.
fn near_json() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just(r#""RS256""#.to_owned()),
        Just(r#""ES256""#.to_owned()),
        Just(r#""rsa""#.to_owned()),
        Just("null".to_owned()),
        Just("1e999".to_owned()),
        Just("[".repeat(500)),
        "[ -~]{0,20}",
    ];
    let name = prop_oneof![Just("alg"), Just("kid"), Just("crit"), Just("exp"), Just("sub"), Just("aud")];
    proptest::collection::vec((name, value), 0..5).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", pairs.join(","))
    })
}

/// Claims of a token with some others in their place, and possibly a byte that is wrong.
fn near_claims() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop::sample::select(vec![-1.0, 0.0, 0.5, 1e300, 253_402_300_799.0, 253_402_300_799.5]);
    let value = prop_oneof![
        3 => (-40..700_i64).prop_map(|seconds| (NOW_S + seconds).to_string()),
        1 => (-40.0..40.0_f64).prop_map(|seconds| (NOW_S as f64 + seconds).to_string()),
        1 => numbers.prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec![
            "null", "true", "1e999", "-0.0", "99999999999999999999", r#""pylog""#, r#"["pylog"]"#, r#"["x","pylog",1]"#, r#"" alice ""#,
            r#""""#, r#"["a","a"]"#, r#"{"a":1}"#, r#""https://issuer""#, r#""\u0000\ud800""#,
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,12}".prop_map(|text| Value::from(text).to_string()),
        1 => (0..600_usize).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth)),
    ];
    let name = prop::sample::select(vec!["exp", "iat", "nbf", "sub", "aud", "iss", "scope", "other"]);
    let changes = prop::collection::vec((name, value), 0..4);
    let damage = prop_oneof![4 => Just(None), 1 => any::<(usize, u8)>().prop_map(Some)];
    (changes, damage).prop_map(|(changes, damage)| {
        let kept = claims();
        let kept = kept.as_object().unwrap().iter();
        let kept = kept.filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        let all = kept.map(|(name, value)| (name.as_str(), value.to_string())).chain(changes.clone());
        let pairs: Vec<String> = all.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let mut bytes = format!("{{{}}}", pairs.join(",")).into_bytes();
        if let Some((at, byte)) = damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes
    })
}

/// What must be so of the claims of every token that is valid.
fn are_good(claims: &Map<String, Value>, rules: &TokenRules) -> bool {
    let (now, skew) = (NOW_S as f64, f64::from(rules.clock_skew_seconds));
    let seconds = |name: &str| claims.get(name).and_then(Value::as_f64);
    let ours = |name: &Value| name.as_str().is_some_and(|name| rules.audiences.iter().any(|our| our == name));
    let is_meant = match claims.get("aud") {
        None => rules.audiences.is_empty(),
        Some(aud) => ours(aud) || aud.as_array().is_some_and(|all| all.iter().any(ours)),
    };
    seconds("exp").is_some_and(|end| end > now - skew)
        && seconds("iat").is_some_and(|begun| begun <= now + skew)
        && (claims.get("nbf").is_none() || seconds("nbf").is_some_and(|begins| begins <= now + skew))
        && claims.get("sub").and_then(Value::as_str).is_some_and(|subject| !subject.trim().is_empty())
        && is_meant
        && rules
            .issuer
            .as_deref()
            .is_none_or(|issuer| claims.get("iss").and_then(Value::as_str) == Some(issuer))
}

proptest! {
    #[test]
    fn mutated_claims_that_are_signed_are_judged_and_never_panic(claims in near_claims(), is_strict in any::<bool>()) {
        thread_local!(static ISSUER: Issuer = Issuer::new());
        let mut rules = TokenRules::default();
        if is_strict {
            rules.audiences = vec!["pylog".into()];
            rules.issuer = Some("https://issuer".into());
        }
        let judged = ISSUER.with(|issuer| {
            let token = issuer.signed(&json!({"alg": "ES256", "kid": "ec"}), &claims);
            issuer.validator(rules.clone()).validate(&token, NOW_MS)
        });
        match serde_json::from_slice::<Map<String, Value>>(&claims) {
            Err(_) => prop_assert!(matches!(judged, Err(TokenError::Malformed(_))), "{:?}", judged),
            Ok(read) => match judged {
                Ok(token) => {
                    prop_assert!(are_good(&read, &rules), "{:?}", read);
                    prop_assert_eq!(Some(token.subject.as_str()), read["sub"].as_str().map(str::trim));
                }
                Err(
                    TokenError::Claim(_)
                    | TokenError::Expired
                    | TokenError::TooEarly
                    | TokenError::Issuer
                    | TokenError::Audience,
                ) => {}
                Err(other) => prop_assert!(false, "its claims were not judged: {}", other),
            },
        }
    }

    #[test]
    fn random_text_is_never_a_valid_token(
        text in "[-_.=a-zA-Z0-9]{0,80}",
        header in near_json(),
        claims in near_json(),
        signature in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        thread_local!(static VALIDATOR: TokenValidator = validator());
        let right = base64(br#"{"alg":"RS256","kid":"rsa"}"#);
        let whole = format!("{}.{}.{}", base64(header.as_bytes()), base64(claims.as_bytes()), base64(&signature));
        for token in [text.clone(), format!("{right}.{text}"), format!("{text}.{text}.{text}"), whole] {
            prop_assert!(VALIDATOR.with(|validator| validator.validate(&token, NOW_MS)).is_err());
        }
    }

    #[test]
    fn a_random_jwks_is_read_or_refused(keys in proptest::collection::vec(near_json(), 0..4)) {
        let read = TokenValidator::new(&format!("{{\"keys\":[{}]}}", keys.join(",")), TokenRules::default());
        prop_assert!(read.is_err(), "no key is whole");
    }
}
