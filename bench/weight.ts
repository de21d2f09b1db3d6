/**
 * Size, packages and seconds of an installation with an empty cache: `npm run bench:weight`. The packed tarball and the peers are
 * installed into empty folders, without install scripts. Prints a Markdown table.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { install, named } from './peers/install.js'
import { median } from './table.js'

const ROUNDS = 3
const root = mkdtempSync(join(tmpdir(), 'rushes-weight-'))
process.once('exit', () => rmSync(root, { recursive: true, force: true }))

const packed = spawnSync('npm', ['pack', '--json', '--pack-destination', root], { encoding: 'utf8' })
const tarball = readdirSync(root).find((name) => name.endsWith('.tgz'))
if (tarball === undefined) throw new Error(`npm packed nothing: ${packed.stderr}`)

const bytesBelow = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

const packagesIn = (modules: string): number =>
  Object.keys(JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')).packages).length

const subjects = [
  { name: 'rushes', from: join(root, tarball) },
  { name: named('mmx-cli'), from: named('mmx-cli') },
  { name: named('@wavespeed/cli'), from: named('@wavespeed/cli') },
]
const figures = subjects.map(({ name }) => ({ name, seconds: [] as number[], packages: 0, bytes: 0 }))
for (let round = 0; round < ROUNDS; round++)
  for (const [at, { from }] of subjects.entries()) {
    const folder = join(root, `${round}-${at}`)
    mkdirSync(folder)
    const figure = figures[at]
    if (figure === undefined) continue
    figure.seconds.push(await install(folder, [from], join(root, `cache-${round}-${at}`)))
    figure.packages = packagesIn(join(folder, 'node_modules'))
    figure.bytes = bytesBelow(join(folder, 'node_modules'))
    rmSync(join(root, `cache-${round}-${at}`), { recursive: true, force: true })
    // The last round's folder is measured below.
    if (round < ROUNDS - 1) rmSync(folder, { recursive: true, force: true })
  }

console.log('| | MB | packages | seconds |\n|---|--:|--:|--:|')
for (const { name, bytes, packages, seconds } of figures)
  console.log(`| ${name} | ${(bytes / 1e6).toFixed(1)} | ${packages} | ${median(seconds).toFixed(1)} |`)

/** The largest packages of our installation. */
const modules = join(root, `${ROUNDS - 1}-0`, 'node_modules')
const heaviest = readdirSync(modules)
  .filter((name) => !name.startsWith('.'))
  .flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((each) => `${name}/${each}`) : [name],
  )
  .map((name) => ({ name, bytes: bytesBelow(join(modules, name)) }))
  .sort((a, b) => b.bytes - a.bytes)
  .slice(0, 6)
console.log(
  `\nHeaviest in rushes: ${heaviest.map(({ name, bytes }) => `${name} ${(bytes / 1e6).toFixed(1)}`).join(', ')}`,
)
