/** The files of `deploy/` agree with the program. Docker itself is not needed; nginx is in deploy-nginx.system.ts. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, createPlace, listen, runCli, start } from './support/index.js'
import { ROOT, read } from './support/project.js'

const DOCKERFILE = read('deploy/Dockerfile').replace(/\\\n\s*/g, '')
const UNIT = 'deploy/systemd/rushes@.service'

/** The only complaint of a command whose other flags are valid. */
const NO_SUCH = '--no-such'

const instructions = (name: string): readonly string[] =>
  [...DOCKERFILE.matchAll(new RegExp(`^${name} (.+)$`, 'gm'))].map(([, words = '']) => words)
const finalInstruction = (name: string): string => instructions(name).at(-1) ?? ''

test('the image copies existing files, runs without root, and contains no secret', () => {
  const allowed = read('deploy/Dockerfile.dockerignore')
  const sources = instructions('COPY')
    .filter((words) => !words.startsWith('--from'))
    .flatMap((words) => words.split(' ').slice(0, -1))
  for (const source of sources) {
    expect(existsSync(join(ROOT, source)), source).toBe(true)
    expect(allowed).toMatch(new RegExp(`^!${source.replaceAll('.', '\\.')}$`, 'm'))
  }
  expect(allowed).toMatch(/^\*$/m)
  expect(finalInstruction('USER')).toBe('node')
  expect(DOCKERFILE).not.toMatch(/PASSWORD|SECRET|_KEY|--mount/)
})

test('the image starts rushes with valid flags', async () => {
  const [program, ...words] = [
    ...JSON.parse(finalInstruction('ENTRYPOINT')),
    ...JSON.parse(finalInstruction('CMD')),
  ]
  expect([program, words]).toEqual(['rushes', ['serve', '--host', '0.0.0.0']])
  expect((await runCli([...words, '--no-such'])).stderr).toContain(NO_SUCH)
})

test.each([
  ['--port=<port>', ['--host=0.0.0.0', '--port=<port>', '--metrics-port=9464']],
  ['--port <port>', ['--port', '1', '--port', '<port>', '--host', '0.0.0.0']],
])('the health check asks the port of the node, of which the last counts: %s', async (_, flags) => {
  const place = createPlace()
  let path: string | undefined
  const server = createServer(({ url }, response) => {
    path = url
    response.statusCode = path === '/readyz' ? 200 : 404
    response.end()
  })
  const port = String(await listen(server))
  // With `init: true` it is not rushes itself.
  const words = ['/sbin/docker-init', '--', 'rushes', 'serve', ...flags]
  const mainProcess = join(place.home, 'cmdline')
  writeFileSync(mainProcess, `${words.map((word) => word.replace('<port>', port)).join('\0')}\0`)
  const check: readonly string[] = JSON.parse(finalInstruction('HEALTHCHECK').replace(/^.*?CMD /, ''))
  expect(check.join(' ')).toContain(`port = ${finalInstruction('EXPOSE')}]`)
  const [command = '', ...rest] = check.map((word) => word.replace('/proc/1/cmdline', mainProcess))
  const { code } = await start(place, rest, { command, stdin: 'ignore' }).ended
  expect({ code, path }).toEqual({ code: 0, path: '/readyz' })
})

test('the systemd unit starts a node on the port of its name, with the flags of its files', async () => {
  const unit = read(UNIT)
  const [, script = ''] =
    /^ExecStart=\/bin\/sh -c '(.+)' rushes --port %i \$SERVE_FLAGS \$NODE_FLAGS$/m.exec(unit) ?? []
  const place = createPlace()
  writeFileSync(join(place.home, 'database-url'), '\n')
  const words = [...unit.matchAll(/^# +\w+_FLAGS=(.+)$/gm)].flatMap(([, flags = '']) => flags.split(' '))
  expect(words).toHaveLength(10)
  const node = start(
    place.with({ CREDENTIALS_DIRECTORY: place.home }),
    ['-c', script.replaceAll('$$', '$'), 'rushes', '--port', '0', '--json'],
    { command: '/bin/sh', stdin: 'ignore' },
  )
  await node.prints('stdout', /"url":"http:\/\/127\.0\.0\.1:\d+"/)
  node.kill('SIGTERM')
  expect((await node.ended).code).toBe(0)
  expect((await runCli(['serve', ...words, '--no-such'])).stderr).toContain(NO_SUCH)
})

test.skipIf(spawnSync('systemd-analyze', ['--version']).status !== 0)(
  'systemd accepts the unit, and finds it well protected',
  async () => {
    const place = createPlace()
    const file = join(place.folder, 'rushes@7878.service')
    cpSync(join(ROOT, UNIT), file)
    expect(await bash(place, `systemd-analyze verify ${file}`)).toMatchObject({ code: 0, stderr: '' })
    // From 0, all protection, to 100.
    const rated = await bash(place, `systemd-analyze security --offline=true --threshold=20 ${file}`)
    expect(rated.code, rated.stdout).toBe(0)
  },
)
