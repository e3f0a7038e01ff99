//! Nothing: the manifest only names a source to fetch.
