//! Settings of topics that name something else: whoever sets one needs a right to what it names, too.
//!
//! A topic's dead letters are written by the broker, so that its word alone would reach every topic. Whoever names the topic must be allowed
//! to write to it, and is remembered in [`OWNER`] beside it, from which the right is asked for again when letters are written
//! (`produce/dead_letters`). What a client itself says of that setting is left out: tools send back all that they were shown.
//!
//! A denial is the same whether or not what is named exists.
use std::net::IpAddr;

use crate::authorization::table::Right;
use crate::call::Call;
use pylog_security::principal::Principal;
use pylog_wire::ErrorCode;
use pylog_wire::messages::incremental_alter_configs::{APPEND, DELETE, SET};
use pylog_wire::messages::{alter_configs, create_topics, incremental_alter_configs};

/// The topic that gets the records that a topic refuses.
const DEAD_LETTERS: &str = "schema.validation.dead.letter.topic";
/// Who set that.
const OWNER: &str = "schema.validation.dead.letter.owner";
/// Groups whose offsets hold retention back.
const KEPT_FOR: &str = "retention.until.checkpointed";

/// The rights that a request demands.
pub struct NamingRights {
    /// To the topic of [`DEAD_LETTERS`].
    pub dead_letters: &'static Right,
    /// To each group of [`KEPT_FOR`].
    pub groups: &'static Right,
}

/// A setting of a topic as a request has it.
pub trait GivenConfig {
    /// The setting with this text.
    fn set(name: &str, text: String) -> Self;
    /// The setting without a text of its own, where such a change can be said.
    fn reset(name: &str) -> Option<Self>
    where
        Self: Sized;
    /// Its name.
    fn name(&self) -> &str;
    /// What it adds to a topic; empty where it takes something away.
    fn added(&self) -> &str;
}

impl GivenConfig for create_topics::CreatableTopicConfig {
    fn set(name: &str, text: String) -> Self {
        Self { name: name.into(), value: Some(text) }
    }

    fn reset(_name: &str) -> Option<Self> {
        None
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn added(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

impl GivenConfig for alter_configs::AlterableConfig {
    fn set(name: &str, text: String) -> Self {
        Self { name: name.into(), value: Some(text) }
    }

    // What is not named is reset.
    fn reset(_name: &str) -> Option<Self> {
        None
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn added(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

impl GivenConfig for incremental_alter_configs::AlterableConfig {
    fn set(name: &str, text: String) -> Self {
        Self { name: name.into(), config_operation: SET, value: Some(text) }
    }

    fn reset(name: &str) -> Option<Self> {
        Some(Self { name: name.into(), config_operation: DELETE, value: None })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn added(&self) -> &str {
        match self.config_operation {
            SET | APPEND => self.value.as_deref().unwrap_or_default(),
            _ => "",
        }
    }
}

/// Whether the client has the rights to what the settings of a topic name.
///
/// # Errors
/// That of the right; [`why`] has the sentence.
pub fn check<C: GivenConfig>(call: &Call, rights: &NamingRights, configs: &[C]) -> Result<(), ErrorCode> {
    for config in configs {
        let added = config.added().trim();
        match config.name() {
            DEAD_LETTERS if !added.is_empty() => call.check(rights.dead_letters, added)?,
            KEPT_FOR => {
                let groups = added.split(',').map(str::trim).filter(|group| !group.is_empty());
                for group in groups {
                    call.check(rights.groups, group)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The sentence for an error of [`check`].
pub fn why(error: ErrorCode) -> String {
    let what = match error {
        ErrorCode::GroupAuthorizationFailed => format!("{KEPT_FOR} names a group that you may not describe."),
        _ => format!("{DEAD_LETTERS} names a topic that you may not write to."),
    };
    format!("{} {what}", error.sentence())
}

/// Puts down in the settings of a topic who names its dead letter topic.
pub fn record_owner<C: GivenConfig>(call: &Call, configs: &mut Vec<C>) {
    configs.retain(|config| config.name() != OWNER);
    let Some(named) = configs.iter().find(|config| config.name() == DEAD_LETTERS) else { return };
    let is_owned = call.is_guarded() && !named.added().trim().is_empty();
    let owner = match is_owned {
        true => Some(C::set(OWNER, format!("{} {}", call.peer.ip().to_canonical(), call.principal))),
        // Whoever set it before has nothing to do with it any more.
        false => C::reset(OWNER),
    };
    configs.extend(owner);
}

/// Who is put down as the owner, and where they were; `None` where it is nobody.
pub fn owner_of(text: &str) -> Option<(Principal, IpAddr)> {
    let (host, principal) = text.split_once(' ')?;
    Some((principal.parse().ok()?, host.parse().ok()?))
}
