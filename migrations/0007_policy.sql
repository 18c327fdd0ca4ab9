-- Groups of people on a site, which its policy may ask for. A group is there as long as somebody is in it.
create table group_members (
    site_id   text not null references sites (id),
    name      text not null,
    person_id text not null references people (id),
    primary key (site_id, name, person_id)
);
create index group_members_person on group_members (person_id, site_id);

-- Whoever approved may still deny while others are waited for: one decision of each kind, a person.
drop index decisions_one_each;
create unique index decisions_one_each on decisions (approval_id, person_id, verdict);
