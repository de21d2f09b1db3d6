/**
 * Runs one benchmark, or a program of docs/make that draws a picture: `npm run bench -- <name> [words]`. Node 20 runs no TypeScript, so it is bundled first, into a
 * folder below `node_modules`, where packages are found. It runs in a process of its own, from the project's root, and
 * may start itself again for measurements apart.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { emojiAtBuild } from '../src/preview/emoji.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const [name = '', ...words] = process.argv.slice(2)
const programs = ['bench', 'docs/make'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(root, folder, file)),
)
const source = programs.find((path) => basename(path) === `${name}.ts`)

if (source === undefined) {
  const names = programs.map((path) => basename(path, '.ts'))
  console.error(`Which benchmark? ${names.join(', ')}`)
  process.exit(2)
}

/** `import text from './name.lua?raw'`, as the build has it. */
const textFiles = {
  name: 'text-files',
  resolveId: (id, importer) => (id.endsWith('?raw') ? join(dirname(importer), id) : null),
  load: (id) =>
    id.endsWith('?raw')
      ? { code: `export default ${JSON.stringify(readFileSync(id.slice(0, -4), 'utf8'))}`, moduleType: 'js' }
      : null,
}

const folder = join(root, 'node_modules', '.cache', 'rushes-bench')
const bundle = await rolldown({
  cwd: root,
  input: { [name]: source },
  platform: 'node',
  external: [/^node:/, 'pg-native', ...Object.keys(dependencies)],
  plugins: [textFiles, emojiAtBuild()],
})
await bundle.write({
  dir: folder,
  format: 'esm',
  entryFileNames: '[name].mjs',
  chunkFileNames: `${name}-[name].mjs`,
})
await bundle.close()

spawn(process.execPath, [join(folder, `${name}.mjs`), ...words], { cwd: root, stdio: 'inherit' }).once(
  'exit',
  (code) => {
    process.exitCode = code ?? 1
  },
)
