/**
 * The build: one thin entry with a chunk per command, the library, and the renderer, which runs in a process of its
 * own. Native and WebAssembly packages, and what only the service needs, stay outside; what every command needs is
 * bundled, since loading packages file by file costs more than running them. Silent, and quick enough for `prepare`.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('.', import.meta.url))

// Installed as a package, with `dist` in it, there is nothing to build and nothing to build it with.
if (!existsSync(join(root, 'src'))) process.exit(0)

const { rolldown } = await import('rolldown')

const EXTERNAL = [
  /^node:/,
  'libsql',
  'sharp',
  'fastify',
  '@fastify/static',
  'h264-mp4-encoder',
  /^@fontsource\//,
]

// Beside the old one and then in its place: whoever starts the program meanwhile finds a whole one.
const fresh = join(root, `dist.${process.pid}`)
mkdirSync(fresh, { recursive: true })
try {
  const bundle = await rolldown({
    cwd: root,
    input: {
      rushes: 'src/cli/edge.ts',
      index: 'src/index.ts',
      renderer: 'src/service/engines/renderer.ts',
    },
    platform: 'node',
    external: EXTERNAL,
    plugins: [textFiles()],
    logLevel: 'warn',
  })
  await bundle.write({
    dir: fresh,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    sourcemap: false,
  })
  await bundle.close()
  declareTypes(fresh)
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(fresh, join(root, 'dist'))
} finally {
  rmSync(fresh, { recursive: true, force: true })
}

/** `import text from './name.sh?raw'`, as vitest has it. */
function textFiles() {
  return {
    name: 'text-files',
    resolveId: (id, importer) => (id.endsWith('?raw') ? join(dirname(importer), id) : null),
    load: (id) =>
      id.endsWith('?raw')
        ? {
            code: `export default ${JSON.stringify(readFileSync(id.slice(0, -4), 'utf8'))}`,
            moduleType: 'js',
          }
        : null,
  }
}

function declareTypes(folder) {
  const tsc = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace(/package\.json$/, 'bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', join(folder, 'types')], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  keepReached(join(folder, 'types'))
}

/** Of the types only those that the library's own lead to. */
function keepReached(folder) {
  const reached = new Set()
  const visit = (path) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const [, name] of readFileSync(path, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g))
      visit(join(dirname(path), `${name}.d.ts`))
  }
  visit(join(folder, 'index.d.ts'))
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !reached.has(path)) rmSync(path)
  }
}
