/** The page's whole style; colours follow the reader's system. */
export const REFERENCE_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dee6, #3a4450); --soft: light-dark(#f4f6f9, #1b222a);
  --text: light-dark(#1a2230, #e4e9f0); --quiet: light-dark(#536070, #a0acba); --link: light-dark(#0b57a4, #7db8f5);
  --ground: light-dark(#ffffff, #11161c); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); background: var(--ground);
  color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem 1.25rem; border-right: 1px solid var(--line);
  font-size: .875rem; }
nav h2 { margin: 1rem 0 .25rem; font-size: .875rem; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: .125rem 0; }
main { padding: 1.5rem 2rem 6rem; max-width: 60rem; }
a { color: var(--link); }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--ground); padding: .5rem; }
h1 small, td small { color: var(--quiet); font-weight: normal; font-size: .8em; }
h2 { margin-top: 3rem; }
article { border-top: 1px solid var(--line); padding-top: .5rem; margin-top: 2rem; scroll-margin-top: 1rem; }
h4 { margin: 1.25rem 0 .25rem; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
td code, .call code { overflow-wrap: anywhere; }
figure { margin: .75rem 0; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
figcaption { padding: .25rem .75rem; background: var(--soft); color: var(--quiet); font-size: .8rem; }
pre { margin: 0; padding: .75rem; overflow-x: auto; max-height: 28rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { color: var(--quiet); font-weight: 600; }
.call span { display: inline-block; min-width: 3.5rem; font-weight: 700; }
.codes { columns: 18rem; }
summary { cursor: pointer; color: var(--link); margin: .5rem 0; }
:target { outline: 2px solid var(--link); outline-offset: 4px; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; } main { padding: 1rem; } }
`;
