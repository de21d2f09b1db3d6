/**
 * The build. It writes to `dist/`: the program and the renderer as CommonJS with a chunk per command, the library as
 * ESM with its types, the files that the pages of the console load, the files that the renderer reads, and the licenses of the packages that
 * are bundled. Everything but the native packages is bundled, so that loading is fast and installing is small.
 * It does nothing while its inputs are those of the last build; without `dist/`, it always builds.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// `prepare` also runs where the package is installed: `dist` is in it, and the sources and the bundler are not.
if (!fs.existsSync(join(root, 'src'))) process.exit(0)

/** Modules of one chunk: a chunk takes as long to load as 20 KB of code, and each `run` line needs all of these. */
const SETTINGS = /src[\\/]cli[\\/]settings[\\/](config-file|folders|settings)\.ts$/

/** Written last, and replaced with the folder as a whole. */
const STAMP = 'inputs.sha256'
const inputs = hashOfInputs()
if (readIfThere(join(root, 'dist', STAMP)) === inputs) process.exit(0)

const [{ rolldown }, { emojiAtBuild }] = await Promise.all([
  import('rolldown'),
  import('../src/preview/emoji.mjs'),
])

const { resolve } = createRequire(import.meta.url)
const { dependencies } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))

/** Folders of the packages whose code or files are in `dist`. */
const bundledPackages = new Set()

// Built in a folder of its own and then renamed, so that a program started meanwhile finds a complete `dist`.
const target = join(root, `dist.${process.pid}`)
const before = `${target}.before`
fs.mkdirSync(target)
try {
  const programs = {
    rushes: 'src/cli/start.ts',
    renderer: 'src/preview/renderer.ts',
    thumbnailer: 'src/preview/thumbnailer.ts',
    picture: 'src/preview/picture-process.ts',
  }
  await bundle(programs, 'cjs')
  await bundle({ index: 'src/index.ts' }, 'esm')
  copyConsole(join(target, 'console'))
  copyParts(join(target, 'parts'))
  fs.writeFileSync(join(target, 'third-party-licenses.txt'), licenses())
  writeTypes(join(target, 'types'))
  fs.writeFileSync(join(target, STAMP), inputs)
  replaceDist()
} finally {
  for (const folder of [target, before]) fs.rmSync(folder, { recursive: true, force: true })
}

/** Two renames: to remove a folder of hundreds of files takes long enough for a program to start with half of them. */
function replaceDist() {
  const dist = join(root, 'dist')
  // `lstat` also finds a link whose folder is missing.
  if (fs.lstatSync(dist, { throwIfNoEntry: false })) fs.renameSync(dist, before)
  try {
    fs.renameSync(target, dist)
  } catch (error) {
    // A `dist` that another build has just put there is as good. Otherwise restores the previous one.
    if (!fs.existsSync(dist) && fs.existsSync(before)) fs.renameSync(before, dist)
    // Windows reports EPERM.
    if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) throw error
  }
}

/** Packages count by the lock file, and by npm's record of what is installed. */
function hashOfInputs() {
  const sources = fs.readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  const paths = sources.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const others = [
    'deploy/build.mjs',
    'docs/openapi.json',
    'package.json',
    'package-lock.json',
    'skills/rushes/SKILL.md',
    'tsconfig.json',
    'deploy/tsconfig.types.json',
  ]
  const hash = createHash('sha256')
  for (const path of [...paths.sort(), ...others.map((name) => join(root, name))])
    hash
      .update(`${path.slice(root.length)}\0`)
      .update(fs.readFileSync(path))
      .update('\0')
  hash.update(readIfThere(join(root, 'node_modules', '.package-lock.json')) ?? '')
  return hash.digest('hex')
}

function readIfThere(path) {
  try {
    return fs.readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

async function bundle(input, format) {
  const build = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    // Needed by `codeSplitting`. The programs export more than their sources.
    ...(format === 'cjs' && { preserveEntrySignatures: 'allow-extension' }),
    external: [/^node:/, 'pg-native', ...Object.keys(dependencies)],
    plugins: [textFiles(), emojiAtBuild()],
    logLevel: 'warn',
    // Otherwise it warns on a slow machine.
    checks: { bundlerTimings: false },
  })
  const extension = format === 'cjs' ? 'cjs' : 'js'
  // Stack traces need the names.
  const keepNames = { function: true, class: true }
  const { output } = await build.write({
    dir: target,
    format,
    entryFileNames: `[name].${extension}`,
    chunkFileNames: `[name]-[hash].${extension}`,
    ...(format === 'cjs' && {
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [
          { name: 'settings', test: SETTINGS },
          { name: 'document', test: /src[\\/]protocol[\\/](model-document|validate)\.ts$/ },
        ],
      },
    }),
    minify: { compress: { keepNames }, mangle: { keepNames }, codegen: { removeWhitespace: true } },
  })
  await build.close()
  for (const { moduleIds = [] } of output) for (const path of moduleIds) notePackage(path)
}

/** The files that a browser loads. */
function copyConsole(folder) {
  const htmx = resolve('htmx.org/dist/htmx.min.js')
  fs.mkdirSync(folder)
  fs.copyFileSync(htmx, join(folder, 'htmx.js'))
  notePackage(htmx)
  for (const name of ['console.css', 'console.js', 'icon.svg'])
    fs.copyFileSync(join(root, 'src', 'console', name), join(folder, name))
}

function notePackage(path) {
  const [folder] = /^.*[\\/]node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+/.exec(path) ?? []
  if (folder !== undefined) bundledPackages.add(folder)
}

/** The files that the renderer reads: the font of the captions, and the encoder. */
function copyParts(folder) {
  const parts = [
    ['inter.ttf', resolve('@expo-google-fonts/inter/500Medium/Inter_500Medium.ttf')],
    ['h264-mp4-encoder.cjs', resolve('h264-mp4-encoder')],
  ]
  fs.mkdirSync(folder)
  for (const [name, path] of parts) {
    fs.copyFileSync(path, join(folder, name))
    notePackage(path)
  }
}

function licenses() {
  const texts = [...bundledPackages].sort().map((folder) => {
    const { name, version, license } = JSON.parse(fs.readFileSync(join(folder, 'package.json'), 'utf8'))
    const files = fs.readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    const words = files.map((file) => fs.readFileSync(join(folder, file), 'utf8').trim())
    return [`${name} ${version} (${license})`, ...words].join('\n\n')
  })
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

function writeTypes(folder) {
  const tsc = join(dirname(resolve('typescript/package.json')), 'bin', 'tsc')
  execFileSync(process.execPath, [tsc, '-p', 'deploy/tsconfig.types.json', '--outDir', folder], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

/** `import text from './name.sh?raw'`, as vitest has it. */
function textFiles() {
  const codeOf = (path) => `export default ${JSON.stringify(fs.readFileSync(path, 'utf8'))}`
  return {
    name: 'text-files',
    resolveId: (id, importer) => (id.endsWith('?raw') ? join(dirname(importer), id) : null),
    load: (id) => (id.endsWith('?raw') ? { code: codeOf(id.slice(0, -4)), moduleType: 'js' } : null),
  }
}
