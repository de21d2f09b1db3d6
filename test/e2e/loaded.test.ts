/** What is loaded before anything is known to be needed: start-up is paid at every call. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { start } from '../support/binary.js'
import { temporaryFolder } from '../support/service.js'

/** Writes down every module that is resolved; lives on a thread of its own, as loader hooks do. */
const HOOKS = `
import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
  appendFileSync(process.env.LOADED, url + '\\n')
  return next(url, context)
}
`
const REGISTER = `
import { register } from 'node:module'
register('./hooks.mjs', import.meta.url)
`

/** The packages whose code is in what was loaded, by the markers that the bundler leaves, or by their own path. */
async function packagesLoadedBy(
  argv: readonly string[],
): Promise<{ readonly packages: readonly string[]; readonly files: readonly string[] }> {
  const folder = temporaryFolder()
  const list = join(folder, 'loaded')
  writeFileSync(join(folder, 'hooks.mjs'), HOOKS)
  writeFileSync(join(folder, 'register.mjs'), REGISTER)
  const flags = ['--import', pathToFileURL(join(folder, 'register.mjs')).href]
  await start(argv, { nodeFlags: flags, env: { LOADED: list } }).ended
  const files = readFileSync(list, 'utf8')
    .trim()
    .split('\n')
    .filter((url) => url.startsWith('file:'))
  const regions = files.flatMap((url) => [
    url,
    ...(readFileSync(fileURLToPath(url), 'utf8').match(/^\/\/#region .*$/gm) ?? []),
  ])
  const names = regions.flatMap((each) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(each)?.[1] ?? [])
  return { packages: [...new Set(names)], files: regions }
}

const HEAVY = ['undici', 'ora', 'conf', 'libsql', 'fastify', '@fastify/static', 'sharp', 'file-type']

it.each([
  [['--version']],
  [['--help']],
  [['run', 'image', '--help']],
  [['run', 'image', '--no-such-flag']],
  [['run', 'image', '--quality', 'best', 'fox']],
  [['run', 'image', 'fox', '--dry-run', '--model', 'acme/still-1']],
])('%j loads nothing heavy', async (argv) => {
  const { packages, files } = await packagesLoadedBy(argv)
  expect(packages).toContain('commander')
  expect(packages.filter((name) => HEAVY.includes(name))).toEqual([])
  expect(files.filter((each) => /src\/service\/(http|store|index)/.test(each))).toEqual([])
})

it('would see them', async () => {
  const { packages } = await packagesLoadedBy(['status', 'x', '--base-url', 'http://127.0.0.1:9', '--json'])
  // No key: the address is known by then, and the client is not.
  expect(packages).not.toContain('undici')
  const { packages: local } = await packagesLoadedBy(['status', 'x', '--local'])
  expect(local).toEqual(expect.arrayContaining(['undici', 'libsql', 'fastify']))
})
