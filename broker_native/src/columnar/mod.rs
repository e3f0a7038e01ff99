//! Record batch <-> Arrow.
