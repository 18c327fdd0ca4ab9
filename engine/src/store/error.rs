//! What can go wrong in the store, and how a unit of work says no.

use cloudhal_domain::code::{Code, Refusal};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Driver(#[from] sqlx::Error),
    #[error("migration failed: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A row that fits no state: somebody changed it by hand, or we have a bug.
    #[error("inconsistent row in {table}, {column}, id {id}")]
    Inconsistent {
        table: &'static str,
        column: &'static str,
        id: String,
    },
    #[error("{0}")]
    Unsuitable(String),
    /// COMMIT was sent and no good answer came: it may have happened or not, and only the record can tell. This goes for every
    /// error of COMMIT: SQLite may have written the commit record before it failed, and a PostgreSQL that ends a connection says
    /// so in the place of what it has just committed.
    #[error("the outcome of COMMIT is not known")]
    Uncertain,
    /// A unit of work ended without an answer.
    #[error("the writer stopped")]
    Stopped,
}

impl StoreError {
    /// The name of the constraint that a write broke, where that is what happened.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Driver(sqlx::Error::Database(e)) if e.is_unique_violation())
    }

    /// PostgreSQL takes no NUL character in a text; trying again would not help.
    fn is_odd_text(&self) -> bool {
        matches!(self, Self::Driver(sqlx::Error::Database(e)) if e.code().as_deref() == Some("22021"))
    }
}

/// How a unit of work ends without a result; either way nothing of it stays.
#[derive(Debug, thiserror::Error)]
pub enum Fail {
    /// A no of the domain.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machinery failed; the same unit may succeed later.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for Fail {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "store");
        match error {
            StoreError::Inconsistent { .. } => Refusal::new(
                Code::Internal,
                "A stored record does not make sense. Nothing was changed. Ask the operator to run `cloudhal verify`.",
            ),
            error if error.is_odd_text() => Refusal::new(
                Code::InvalidArguments,
                "A text holds a NUL character, which nothing here has. Nothing was changed.",
            ),
            StoreError::Uncertain => Refusal::new(
                Code::Unavailable,
                "The database's answer was lost, so whether this happened is not known here. Repeat the same call in a moment: with an approvalId it runs once at most. Before you repeat an edit, read what is there.",
            ),
            _ => Refusal::new(
                Code::Unavailable,
                "The database is busy or cannot be reached. Nothing was changed. Try again in a moment.",
            ),
        }
    }
}

impl From<Fail> for Refusal {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Refused(refusal) => refusal,
            Fail::Store(error) => error.into(),
        }
    }
}

/// Reads a word of a closed list out of a row.
pub(crate) fn known<T>(
    value: Option<T>,
    table: &'static str,
    column: &'static str,
    id: &str,
) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Inconsistent {
        table,
        column,
        id: id.to_owned(),
    })
}
