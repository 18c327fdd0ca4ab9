//! One module per screen.

pub mod studio;

pub mod changes;
pub mod desk;

pub mod approval;

pub mod sites;

pub mod site;

pub mod node;

pub mod versions;

pub mod agents;
pub mod people;
pub mod settings;

pub mod journal;
pub mod login;
pub mod trouble;
