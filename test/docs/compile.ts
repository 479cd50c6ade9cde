import ts from 'typescript';

/** What the compiler says of sources that are on no disk. */
export function complaintsAbout(sources: ReadonlyMap<string, string>): string {
  const options: ts.CompilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2022.d.ts'],
    types: ['node'],
    typeRoots: [`${process.cwd()}/node_modules/@types`],
    skipLibCheck: true,
    noEmit: true,
  };
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile.bind(host);
  const fileExists = host.fileExists.bind(host);
  host.readFile = (name) => sources.get(name) ?? readFile(name);
  host.fileExists = (name) => sources.has(name) || fileExists(name);
  const getFile = host.getSourceFile.bind(host);
  host.getSourceFile = (name, target, ...rest) => {
    const text = sources.get(name);
    return text === undefined ? getFile(name, target, ...rest) : ts.createSourceFile(name, text, target);
  };
  const program = ts.createProgram([...sources.keys()], options, host);
  return ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host);
}
