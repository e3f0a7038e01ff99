//! Reads the certificates of listeners anew when their files change. New connections use them from then on; those that are open keep
//! what they began with. A file that cannot be used changes nothing: the log has one error line, and the next change is tried again.
use std::sync::Arc;
use std::time::Duration;

use crate::listeners::Listener;
use crate::shutdown::Shutdown;
use pylog_log::loggers::NETWORK;
use pylog_log::{error, info};

/// How often to look at the files.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after those of `listeners` that have certificates, until the server stops. Called within the runtime.
pub fn start(listeners: Vec<Arc<Listener>>, shutdown: &Arc<Shutdown>) {
    let listeners: Vec<_> = listeners.into_iter().filter(|listener| listener.tls.is_some()).collect();
    if listeners.is_empty() {
        return;
    }
    let shutdown = Arc::clone(shutdown);
    tokio::spawn(async move {
        while tokio::time::timeout(LOOK, shutdown.wait()).await.is_err() {
            let listeners = listeners.clone();
            // Disks and password-based keys take time. A panic inside must not end the watch.
            let _ = tokio::task::spawn_blocking(move || listeners.iter().for_each(|listener| look(listener)))
                .await;
        }
    });
}

fn look(listener: &Listener) {
    let Some(tls) = listener.tls.as_ref().filter(|tls| tls.server.files_changed()) else { return };
    match tls.server.reload() {
        Ok(certificate) => {
            info!(target: NETWORK, "the listener {listener} uses its new certificate: {certificate}")
        }
        Err(why) => {
            error!(target: NETWORK, "the listener {listener} keeps the certificate that it has, since its files were changed and cannot be used: {why}");
        }
    }
}
