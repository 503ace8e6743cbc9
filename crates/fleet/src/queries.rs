//! The questions that have an answer ready: the files of analysis/fleet.

/// A question in SQL.
#[derive(Debug, Clone, Copy)]
pub struct FleetQuery {
    /// Its name.
    pub name: &'static str,
    /// The SQL, which begins with a comment that says what it answers.
    pub sql: &'static str,
}

macro_rules! queries {
    ($($name:literal),*) => {
        /// All of them.
        pub const FLEET_QUERIES: &[FleetQuery] = &[$(FleetQuery {
            name: $name,
            sql: include_str!(concat!("../../../analysis/fleet/", $name, ".sql")),
        }),*];
    };
}

queries!(
    "wasted",
    "spawners",
    "directories",
    "accounting",
    "regressions",
    "outliers",
    "efficiency",
    "requests"
);

impl FleetQuery {
    /// The question of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FLEET_QUERIES.iter().find(|query| query.name == name)
    }

    /// The question that it answers.
    pub fn says(&self) -> String {
        let comment = self.sql.lines().map_while(|line| line.strip_prefix("-- "));
        comment.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_says_what_it_answers() {
        for query in FLEET_QUERIES {
            assert!(query.says().ends_with('.'), "{}", query.name);
            assert!(FleetQuery::named(query.name).is_some());
        }
        assert!(FleetQuery::named("drop").is_none());
    }
}
