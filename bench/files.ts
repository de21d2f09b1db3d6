/**
 * The source files that one local run and one row of a batch pass through: `npm run bench -- files`. A file counts if one
 * of its functions was called in the process of the command. With `-- names`, lists them.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { row } from './table.js'

const root = resolve('.')
const folder = mkdtempSync(join(root, 'node_modules', '.cache', 'rushes-files-'))

interface Range {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}
interface Script {
  readonly url: string
  readonly functions: readonly { readonly functionName: string; readonly ranges: readonly Range[] }[]
}

const textFiles = {
  name: 'text-files',
  resolveId: (id: string, importer: string) => (id.endsWith('?raw') ? join(dirname(importer), id) : null),
  load: (id: string) =>
    id.endsWith('?raw')
      ? { code: `export default ${JSON.stringify(readFileSync(id.slice(0, -4), 'utf8'))}`, moduleType: 'js' }
      : null,
}

/** Each source file stays a module of its own. */
async function build(): Promise<string> {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  // By names that the bundle of this benchmark does not follow.
  const [bundler, emoji]: readonly string[] = ['rolldown', 'src/preview/emoji.mjs']
  const { rolldown } = await import(String(bundler))
  const { emojiAtBuild } = await import(resolve(String(emoji)))
  const bundle = await rolldown({
    input: { rushes: 'src/cli/start.ts' },
    platform: 'node',
    external: [/^node:/, 'pg-native', ...Object.keys(dependencies)],
    plugins: [textFiles, emojiAtBuild()],
    logLevel: 'silent',
  })
  await bundle.write({ dir: folder, format: 'cjs', preserveModules: true, preserveModulesRoot: root })
  await bundle.close()
  const entry = join(folder, 'start.cjs')
  // The renderer is looked for beside the code that starts it.
  for (const [user, name] of [
    ['context', 'renderer'],
    ['context', 'thumbnailer'],
    ['runs', 'picture'],
  ] as const)
    writeFileSync(
      join(folder, 'src', 'cli', user, `${name}.cjs`),
      `require(${JSON.stringify(resolve('dist', `${name}.cjs`))})`,
    )
  writeFileSync(entry, "require('./rushes.js').start()")
  return entry
}

function filesOf(entry: string, words: readonly string[], cwd: string): ReadonlySet<string> {
  const coverage = join(cwd, 'coverage')
  const env = { PATH: process.env.PATH, HOME: cwd, NODE_V8_COVERAGE: coverage }
  const { status, stderr } = spawnSync(process.execPath, [entry, ...words], { cwd, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  const files = new Set<string>()
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as { result: readonly Script[] }
    if (!result.some(({ url }) => url.endsWith('/rushes.js'))) continue
    for (const { url, functions } of result) {
      const path = url.startsWith('file:') ? relative(folder, fileURLToPath(url)) : '..'
      const isCalled = functions.some(
        ({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0,
      )
      if (path.startsWith('src/') && isCalled) files.add(path.replace(/\.js$/, '.ts'))
    }
  }
  return files
}

const MANIFEST = '{"runs": [{"name": "fox", "kind": "image", "prompt": "a fox", "output": "fox.png"}]}'
try {
  const entry = await build()
  row('command', 'files')
  row('---', '--:')
  for (const [name, words] of [
    ['one local run', ['run', 'image', 'a fox', '--local', '-q']],
    ['one row of a local batch', ['batch', 'shots.json', '--local', '-q']],
  ] as const) {
    const cwd = mkdtempSync(join(tmpdir(), 'rushes-files-'))
    mkdirSync(join(cwd, 'coverage'))
    writeFileSync(join(cwd, 'shots.json'), MANIFEST)
    const files = filesOf(entry, words, cwd)
    row(name, files.size)
    if (process.argv.includes('names')) for (const file of [...files].sort()) console.log(file)
    rmSync(cwd, { recursive: true })
  }
} finally {
  rmSync(folder, { recursive: true })
}
