//! `sealog token new`: makes a bearer token. It is on standard output this once and nowhere else.

use sealog_http::Scope;
use serde::Serialize;

use crate::args::token::New;
use crate::exit::Exit;
use crate::failure::{Result, shown};
use crate::render::Render;
use crate::tokens;

#[derive(Serialize)]
struct Answer<'a> {
    token: &'a str,
    name: &'a str,
    scopes: Vec<&'static str>,
    file: String,
}

pub fn run(args: &New, render: Render) -> Result<Exit> {
    let scopes: Vec<Scope> = args.scope.iter().map(|scope| Scope::from(*scope)).collect();
    let token = tokens::add(&args.file, &args.name, &scopes)?;
    let file = shown(&args.file);
    if render.json {
        let scopes = scopes.iter().map(|scope| scope.as_str()).collect();
        render.object(&Answer { token: &token, name: &args.name, scopes, file })?;
    } else {
        render.data(&format!("{}\n", token.as_str()))?;
        render.note(&format!(
            "added to {file}; this is the only time the token is shown. A running node reads the file again on SIGHUP"
        ));
    }
    Ok(Exit::Success)
}
