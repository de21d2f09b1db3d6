/**
 * Builds `rushes` as one executable file for this system, by Node's own means (single executable applications):
 *
 *   npm run build && node deploy/executable.mjs rushes
 *
 * The file is this Node.js with `dist/` and the two native packages as assets. `executable-main.cjs` starts it.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inject } from 'postject'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = resolve(process.argv[2] ?? (process.platform === 'win32' ? 'rushes.exe' : 'rushes'))
const { version, dependencies } = readJson(join(root, 'package.json'))

const assets = { ...filesOf('dist', isProgram), ...packagesOf(root, Object.keys(dependencies)) }
const files = Object.fromEntries(
  Object.entries(assets).map(([name, path]) => [name, hashOf(fs.readFileSync(path))]),
)
const id = `${version}-${hashOf(JSON.stringify(files)).slice(0, 12)}`

const folder = fs.mkdtempSync(join(tmpdir(), 'rushes-executable-'))
try {
  const [index, config, output] = ['files.json', 'config.json', 'blob'].map((name) => join(folder, name))
  fs.writeFileSync(index, JSON.stringify({ id, files }))
  fs.writeFileSync(
    config,
    JSON.stringify({
      main: join(root, 'deploy', 'executable-main.cjs'),
      output,
      disableExperimentalSEAWarning: true,
      assets: { ...assets, 'files.json': index },
    }),
  )
  run(process.execPath, '--experimental-sea-config', config)
  const made = join(folder, 'executable')
  fs.copyFileSync(process.execPath, made)
  fs.chmodSync(made, 0o755)
  if (process.platform === 'darwin') run('codesign', '--remove-signature', made)
  await inject(made, 'NODE_SEA_BLOB', fs.readFileSync(output), {
    sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
    machoSegmentName: 'NODE_SEA',
  })
  if (process.platform === 'darwin') run('codesign', '--sign', '-', made)
  fs.copyFileSync(made, target)
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
process.stdout.write(`${target}: ${Math.round(fs.statSync(target).size / 1e6)} MB, ${id}\n`)

/** Without the library and its types. */
function isProgram(name) {
  return !/^dist\/([^/]+\.js|types\/.*|inputs\.sha256)$/.test(name)
}

/** The packages and what they need on this system, at their places below `node_modules`. */
function packagesOf(from, names) {
  return Object.assign(
    {},
    ...names.map((name) => {
      const path = findPackage(from, name)
      const {
        dependencies = {},
        optionalDependencies = {},
        libc,
      } = path === undefined ? {} : readJson(join(path, 'package.json'))
      // A glibc system also has the packages for musl, if npm did not look at the C library.
      const isOther = libc?.includes('musl') || /-musl$/.test(name)
      if (path === undefined || (isOther && isGlibc())) return {}
      const needed = Object.keys({ ...dependencies, ...optionalDependencies })
      return {
        ...filesOf(
          relative(root, path),
          (file) => !file.slice(relative(root, path).length).includes('/node_modules/'),
        ),
        ...packagesOf(path, needed),
      }
    }),
  )
}

function findPackage(from, name) {
  const paths = createRequire(join(from, 'package.json')).resolve.paths(name) ?? []
  return paths.map((path) => join(path, name)).find((path) => fs.existsSync(join(path, 'package.json')))
}

function isGlibc() {
  return process.report.getReport().header.glibcVersionRuntime !== undefined
}

/** Paths by names, which have slashes on every system. */
function filesOf(below, isWanted) {
  const found = fs
    .readdirSync(join(root, below), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
  const paths = found.map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  const named = paths.map((path) => [relative(root, path).replaceAll('\\', '/'), path])
  return Object.fromEntries(
    named.filter(([name]) => isWanted(name)).sort(([one], [other]) => (one < other ? -1 : 1)),
  )
}

function readJson(path) {
  return JSON.parse(fs.readFileSync(path, 'utf8'))
}

function hashOf(bytes) {
  return createHash('sha256').update(bytes).digest('base64url')
}

function run(program, ...words) {
  execFileSync(program, words, { stdio: ['ignore', 'ignore', 'inherit'] })
}
