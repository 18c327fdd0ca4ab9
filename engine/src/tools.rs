//! The one list of everything an agent can reach. A tool's file holds its arguments, what it says of itself, its card and its
//! effect; this one finds a tool, checks arguments, and keeps the kinds apart: a gated effect asks for an [`Authority`].

pub(crate) mod approvals;
mod delete;
mod drafting;
mod node_create;
mod node_get;
mod node_list;
mod node_move;
mod node_search;
mod node_update;
mod publish;
mod rollback;
mod site_get;
mod site_list;
mod version_compare;
mod version_list;

use crate::{
    Engine,
    authority::{Author, Authority},
    callers::Caller,
    changes::Differences,
    sites::{Content, LockedSite},
    store::{Connection, Fail, Tx, sites::SiteRow},
};
use async_trait::async_trait;
use cloudhal_domain::{
    canonical::Fault,
    card::{Asker, Card, CardSite},
    code::{Code, Refusal},
    id::{NodeId, SiteId},
    tool::{Annotations, Effect, ToolSpec},
};
use jsonschema::error::ValidationErrorKind;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{marker::PhantomData, sync::Arc};

/// What every tool says of itself.
pub trait Describe: Send + Sync + 'static {
    type Args: DeserializeOwned + Serialize + JsonSchema + Send + Sync;
    type Output: JsonSchema;
    const ID: &'static str;
    const VERSION: u32 = 1;
    const TITLE: &'static str;
    /// For models.
    const DESCRIPTION: &'static str;
    const ANNOTATIONS: Annotations;
}

/// Changes nothing.
#[async_trait]
pub trait ReadTool: Describe {
    async fn run(engine: &Engine, caller: &Caller, args: Self::Args) -> Result<Value, Refusal>;
}

/// Changes one node of a site's draft, or adds one. A site may let it wait for a person like a gated tool.
pub trait DraftTool: Describe {
    /// How the sentence of its card begins: "Change".
    const VERB: &'static str;
    fn site(args: &Self::Args) -> &SiteId;
    /// The node that it changes; `None` where it adds one.
    fn node(args: &Self::Args) -> Option<&NodeId>;
    /// The revision that the caller looked at.
    fn expected_rev(args: &Self::Args) -> Option<i64>;
    /// What the node would hold, from what it holds now and nothing else: a page draws the same picture long after.
    fn content(args: Self::Args, now: Option<Content>) -> Proposed;
}

/// What a draft tool wants a node to hold.
pub struct Proposed {
    pub content: Content,
    /// After the last sibling, whatever place that is when it runs.
    pub last: bool,
}

/// Changes what others rely on: a model's call waits for a person, who sees the card.
#[async_trait]
pub trait GatedTool: Describe {
    fn site(args: &Self::Args) -> &SiteId;
    /// What would happen, from the state as `site` has it. Refuses what could not run anyway.
    async fn card(
        db: &mut Connection,
        site: &SiteRow,
        asker: Asker,
        args: &Self::Args,
    ) -> Result<Card, Fail>;
    /// The whole list of changes that a card binds, for the site as that card has it: the same at any later time, since a
    /// card lists only the first of a long one.
    async fn differences(
        db: &mut Connection,
        site: &CardSite,
        args: &Self::Args,
    ) -> Result<Differences, Fail>;
    async fn run(
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Self::Args,
    ) -> Result<Value, Fail>;
}

/// A registered tool.
pub struct Tool {
    pub spec: ToolSpec,
    pub binding_version: String,
    pub run: Run,
    validator: jsonschema::Validator,
    normalise: fn(Value) -> Result<Value, serde_json::Error>,
}

#[derive(Clone)]
pub enum Run {
    Read(Arc<dyn Read>),
    Draft(Arc<dyn Draft>),
    Gated(Arc<dyn Gated>),
    /// Stands for another call: the stored one.
    Resume,
}

impl Run {
    /// What can wait for a person: always, or where a site's policy says so.
    pub fn gatable(&self) -> Option<Arc<dyn Gatable>> {
        match self {
            Self::Gated(gated) => Some(gated.clone()),
            Self::Draft(draft) => Some(draft.clone()),
            Self::Read(_) | Self::Resume => None,
        }
    }
}

impl Tool {
    /// Checks arguments and gives them the one form that is hashed, stored and run: validated, defaulted, nothing extra.
    pub fn parse(&self, arguments: Value) -> Result<Value, Refusal> {
        let mut faults: Vec<Fault> = self
            .validator
            .iter_errors(&arguments)
            .take(20)
            .map(|error| fault(&error))
            .collect();
        find_nul(&arguments, &mut String::new(), &mut faults);
        if !faults.is_empty() {
            return Err(invalid_arguments(self.spec.id, faults));
        }
        (self.normalise)(arguments).map_err(|error| {
            invalid_arguments(
                self.spec.id,
                vec![Fault {
                    pointer: String::new(),
                    problem: error.to_string(),
                }],
            )
        })
    }

    /// What clients see: a tool that can wait also takes `reason`, and over MCP `approvalId`; neither is ever hashed.
    pub fn schema_for_agents(&self, with_approval_id: bool) -> Value {
        let mut schema = self.spec.input_schema.clone();
        let where_it_waits = match self.spec.effect {
            Effect::Gated => "",
            Effect::Draft => " Only on a site whose policy lets this call wait.",
            Effect::Read | Effect::Approvals => return schema,
        };
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(
                "reason".into(),
                json!({"type": "string", "maxLength": cloudhal_domain::limits::REASON_CHARS_MAX, "description": format!("Why you ask, in your own words, for the person who decides. Shown last and labelled as yours.{where_it_waits}")}),
            );
            if with_approval_id {
                properties.insert(
                    "approvalId".into(),
                    json!({"type": "string", "description": format!("The id from an approval_pending answer. Repeat the call with exactly the same arguments and this id once a person approved.{where_it_waits}")}),
                );
            }
        }
        schema
    }
}

fn fault(error: &jsonschema::ValidationError<'_>) -> Fault {
    let mut problem = match error.kind() {
        // The library's words for a member of an object that has none.
        ValidationErrorKind::FalseSchema => "nothing is taken here".to_owned(),
        _ => error.to_string(),
    };
    if problem.len() > 300 {
        problem = problem.chars().take(280).collect::<String>() + "…";
    }
    Fault {
        pointer: error.instance_path().to_string(),
        problem,
    }
}

/// A NUL is no text: one engine keeps it and the other fails on it, so neither gets to see one.
fn find_nul(value: &Value, pointer: &mut String, faults: &mut Vec<Fault>) {
    let length = pointer.len();
    let problem = || "NUL characters are not allowed".to_owned();
    match value {
        Value::String(text) if text.contains('\0') => faults.push(Fault {
            pointer: pointer.clone(),
            problem: problem(),
        }),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                find_nul(item, pointer, faults);
                pointer.truncate(length);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                if name.contains('\0') {
                    faults.push(Fault {
                        pointer: pointer.clone(),
                        problem: problem(),
                    });
                }
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                find_nul(item, pointer, faults);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

fn invalid_arguments(tool: &str, faults: Vec<Fault>) -> Refusal {
    let first = faults
        .first()
        .map(|f| {
            format!(
                "{} (at {})",
                f.problem,
                if f.pointer.is_empty() {
                    "the top"
                } else {
                    &f.pointer
                }
            )
        })
        .unwrap_or_default();
    Refusal::new(
        Code::InvalidArguments,
        format!("The arguments of `{tool}` are not valid: {first}. Nothing was done."),
    )
    .with("faults", json!(faults))
}

/// Every tool, in a fixed order.
pub struct Registry(Vec<Tool>);

impl Registry {
    #[expect(
        clippy::new_without_default,
        reason = "there is one registry, and it is made in one place"
    )]
    pub fn new() -> Self {
        Self(vec![
            read::<site_list::SiteList>(),
            read::<site_get::SiteGet>(),
            read::<node_list::NodeList>(),
            read::<node_get::NodeGet>(),
            read::<node_search::NodeSearch>(),
            draft::<node_create::NodeCreate>(),
            draft::<node_update::NodeUpdate>(),
            draft::<node_move::NodeMove>(),
            read::<version_list::VersionList>(),
            read::<version_compare::VersionCompare>(),
            gated::<publish::Publish>(),
            gated::<rollback::Rollback>(),
            gated::<delete::Delete>(),
            of_approvals::<approvals::Get>(),
            tool::<approvals::Resume>(Effect::Approvals, Run::Resume),
            of_approvals::<approvals::Cancel>(),
        ])
    }

    pub fn all(&self) -> &[Tool] {
        &self.0
    }

    /// By its id, to the letter: no trimming, no aliases.
    pub fn get(&self, id: &str) -> Result<&Tool, Refusal> {
        self.0.iter().find(|tool| tool.spec.id == id).ok_or_else(|| {
            let shown: String = id.chars().filter(|c| !c.is_control()).take(60).collect();
            let meant = match self.by_mcp_name(id) {
                Some(tool) => format!(" Over HTTP it is `{}`.", tool.spec.id),
                None => String::new(),
            };
            Refusal::new(Code::UnknownTool, format!("There is no tool `{shown}`.{meant} GET /tools, or tools/list over MCP, names those there are."))
        })
    }

    /// By its MCP name.
    pub fn by_mcp_name(&self, name: &str) -> Option<&Tool> {
        self.0.iter().find(|tool| tool.spec.mcp_name() == name)
    }
}

fn read<T: ReadTool>() -> Tool {
    tool::<T>(Effect::Read, Run::Read(Arc::new(Erased::<T>(PhantomData))))
}

fn of_approvals<T: ReadTool>() -> Tool {
    tool::<T>(
        Effect::Approvals,
        Run::Read(Arc::new(Erased::<T>(PhantomData))),
    )
}

fn draft<T: DraftTool>() -> Tool {
    tool::<T>(
        Effect::Draft,
        Run::Draft(Arc::new(ErasedDraft::<T>(PhantomData))),
    )
}

fn gated<T: GatedTool>() -> Tool {
    tool::<T>(
        Effect::Gated,
        Run::Gated(Arc::new(ErasedGated::<T>(PhantomData))),
    )
}

fn tool<T: Describe>(effect: Effect, run: Run) -> Tool {
    let input_schema = schema::<T::Args>();
    let spec = ToolSpec {
        id: T::ID,
        version: T::VERSION,
        title: T::TITLE,
        description: T::DESCRIPTION,
        effect,
        annotations: T::ANNOTATIONS,
        output_schema: schema::<T::Output>(),
        input_schema,
    };
    // Our own derived schema is valid, and a test builds every validator.
    let validator = jsonschema::validator_for(&spec.input_schema)
        .unwrap_or_else(|error| unreachable!("schema of {}: {error}", spec.id));
    Tool {
        binding_version: spec.binding_version(),
        spec,
        run,
        validator,
        normalise: |value| serde_json::to_value(serde_json::from_value::<T::Args>(value)?),
    }
}

fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Value::Object(map) = &mut schema {
        map.remove("title");
        map.insert("type".into(), "object".into());
    }
    schema
}

fn typed<A: DeserializeOwned>(args: Value) -> Result<A, Refusal> {
    serde_json::from_value(args).map_err(|error| {
        Refusal::new(
            Code::InvalidArguments,
            format!("The arguments do not fit the tool: {error}."),
        )
    })
}

struct Erased<T>(PhantomData<T>);
struct ErasedDraft<T>(PhantomData<T>);
struct ErasedGated<T>(PhantomData<T>);

/// [`ReadTool`] without its argument type.
#[async_trait]
pub trait Read: Send + Sync {
    async fn run(&self, engine: &Engine, caller: &Caller, args: Value) -> Result<Value, Refusal>;
}

#[async_trait]
impl<T: ReadTool> Read for Erased<T> {
    async fn run(&self, engine: &Engine, caller: &Caller, args: Value) -> Result<Value, Refusal> {
        T::run(engine, caller, typed(args)?).await
    }
}

/// A call that can wait for a person.
#[async_trait]
pub trait Gatable: Send + Sync {
    fn site(&self, args: &Value) -> Result<SiteId, Refusal>;
    /// What would happen, under the site's lock. Refuses what could not run anyway, and changes nothing.
    async fn card(
        &self,
        tx: &mut Tx,
        site: &LockedSite,
        asker: Asker,
        args: &Value,
    ) -> Result<Card, Fail>;
    async fn run(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Value,
    ) -> Result<Value, Fail>;
}

/// [`DraftTool`] without its argument type.
#[async_trait]
pub trait Draft: Gatable {
    /// Runs it where the site does not let it wait.
    async fn change(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        by: &Author,
        args: Value,
    ) -> Result<Value, Fail>;
    fn content(&self, args: Value, now: Option<Content>) -> Result<Content, Refusal>;
}

#[async_trait]
impl<T: DraftTool> Gatable for ErasedDraft<T> {
    fn site(&self, args: &Value) -> Result<SiteId, Refusal> {
        Ok(T::site(&typed(args.clone())?).clone())
    }

    async fn card(
        &self,
        tx: &mut Tx,
        site: &LockedSite,
        asker: Asker,
        args: &Value,
    ) -> Result<Card, Fail> {
        drafting::card::<T>(tx, site, asker, typed(args.clone())?).await
    }

    async fn run(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Value,
    ) -> Result<Value, Fail> {
        drafting::run::<T>(tx, site, authority.author(), typed(args)?).await
    }
}

#[async_trait]
impl<T: DraftTool> Draft for ErasedDraft<T> {
    async fn change(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        by: &Author,
        args: Value,
    ) -> Result<Value, Fail> {
        drafting::run::<T>(tx, site, by, typed(args)?).await
    }

    fn content(&self, args: Value, now: Option<Content>) -> Result<Content, Refusal> {
        Ok(T::content(typed(args)?, now).content)
    }
}

/// [`GatedTool`] without its argument type.
#[async_trait]
pub trait Gated: Gatable {
    /// The card from a reader's connection, for a person who is about to act.
    async fn card_now(
        &self,
        db: &mut Connection,
        site: &SiteRow,
        asker: Asker,
        args: &Value,
    ) -> Result<Card, Fail>;
    async fn differences(
        &self,
        db: &mut Connection,
        site: &CardSite,
        args: &Value,
    ) -> Result<Differences, Fail>;
}

#[async_trait]
impl<T: GatedTool> Gatable for ErasedGated<T> {
    fn site(&self, args: &Value) -> Result<SiteId, Refusal> {
        Ok(T::site(&typed(args.clone())?).clone())
    }

    async fn card(
        &self,
        tx: &mut Tx,
        site: &LockedSite,
        asker: Asker,
        args: &Value,
    ) -> Result<Card, Fail> {
        T::card(tx.sql(), site.row(), asker, &typed(args.clone())?).await
    }

    async fn run(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Value,
    ) -> Result<Value, Fail> {
        T::run(tx, site, authority, typed(args)?).await
    }
}

#[async_trait]
impl<T: GatedTool> Gated for ErasedGated<T> {
    async fn card_now(
        &self,
        db: &mut Connection,
        site: &SiteRow,
        asker: Asker,
        args: &Value,
    ) -> Result<Card, Fail> {
        T::card(db, site, asker, &typed(args.clone())?).await
    }

    async fn differences(
        &self,
        db: &mut Connection,
        site: &CardSite,
        args: &Value,
    ) -> Result<Differences, Fail> {
        T::differences(db, site, &typed(args.clone())?).await
    }
}

/// The site as a card shows it.
pub(crate) fn card_site(row: &SiteRow) -> CardSite {
    CardSite {
        id: SiteId::new(&row.id),
        slug: row.slug.clone(),
        title: row.title.clone(),
        live_version: row.live_version,
        node_count: row.node_count,
        state_rev: row.state_rev,
    }
}

/// "3 pages", "1 page".
pub(crate) fn counted(n: i64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

pub(crate) fn clamp_limit(limit: Option<i64>) -> i64 {
    limit
        .unwrap_or(cloudhal_domain::limits::PAGE_ITEMS_DEFAULT)
        .clamp(1, cloudhal_domain::limits::PAGE_ITEMS_MAX)
}
