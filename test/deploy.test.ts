/** The files of `deploy/` agree with each other, with the program and with docs/operations.md. Docker itself is not needed. */
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Command } from 'commander'
import { describe, expect, onTestFinished, test } from 'vitest'
import { register, type ServeOptions } from '../src/cli/commands/serve.js'
import { networksOf, portOf, publicUrlOf } from '../src/cli/serve/flags.js'
import { ROLES } from '../src/service/names.js'
import { bash, createPlace, start } from './support/binary.js'
import {
  type ComposeService,
  DEPLOY,
  finalInstruction,
  hasSystemd,
  healthCheck,
  ROOT,
  readCompose,
  readDeploy,
  readDockerfile,
  readUnit,
  variablesIn,
  wordsOfUnit,
} from './support/deploy.js'

const PUBLIC_URL = 'https://media.test'

/** A copy of the folder in which `make-env` has run. */
async function withSecrets() {
  const place = createPlace()
  const folder = join(place.folder, 'deploy')
  cpSync(DEPLOY, folder, { recursive: true })
  const made = await bash(place, `${folder}/make-env ${PUBLIC_URL}`)
  expect(made.code, made.stderr).toBe(0)
  return { place, folder, env: variablesIn(readFileSync(join(folder, '.env'), 'utf8')) }
}

const SECRETS = {
  DATABASE_PASSWORD: 'a',
  DATABASE_ADMIN_PASSWORD: 'b',
  S3_ACCESS_KEY: 'c',
  S3_SECRET_KEY: 'd',
}
const compose = readCompose({ ...SECRETS, PUBLIC_URL })
const serviceNamed = (name: string): ComposeService => {
  const service = compose.services[name]
  if (service === undefined) throw new Error(`compose.yaml has no service ${name}`)
  return service
}
const nodes = Object.entries(compose.services).filter(([, { image }]) => image === 'rushes')

/** What `rushes serve` understands of these words. Throws for a flag that does not exist. */
function flagsOf(words: readonly string[]): ServeOptions {
  const [name, ...flags] = words
  expect(name).toBe('serve')
  let options: ServeOptions | undefined
  const command = new Command('serve').exitOverride().configureOutput({ writeErr: () => {} })
  register(
    command,
    {
      run: async (_: unknown, work: (ctx: never) => unknown) => void (await work({} as never)),
      print: () => {},
    } as never,
    async (_ctx, parsed) => {
      options = parsed
      return 0
    },
  )
  command.parse(flags, { from: 'user' })
  if (options === undefined) throw new Error('not parsed')
  return options
}

describe('compose.yaml', () => {
  test('defines two API nodes and two workers behind nginx', () => {
    const roles = nodes.map(([name, { command = [], scale = 1 }]) => [name, flagsOf(command).role, scale])
    expect(roles).toEqual([
      ['api-1', 'api', 1],
      ['api-2', 'api', 1],
      ['worker', 'worker', 2],
    ])
  })

  test.each(nodes)('gives %s only flags of rushes serve, and what all nodes need', (_, node) => {
    const flags = flagsOf(node.command ?? [])
    expect(ROLES).toContain(flags.role)
    expect(portOf(flags.port, '--port')).toBe(Number(finalInstruction('EXPOSE')))
    // Otherwise neither nginx nor Prometheus reaches it.
    expect(flags.host).toBe('0.0.0.0')
    expect(flags).toMatchObject({ storage: 's3://rushes/service', metricsPort: '9464' })
    expect(node).toMatchObject({ read_only: true, cap_drop: ['ALL'], stop_grace_period: '10s' })
    expect(node.depends_on).toEqual({
      db: { condition: 'service_healthy' },
      's3-bucket': { condition: 'service_completed_successfully' },
    })
    const databaseUrl = new URL(node.environment?.RUSHES_DATABASE_URL ?? '')
    expect(databaseUrl).toMatchObject({
      hostname: 'db',
      username: 'rushes',
      password: 'a',
      pathname: '/rushes',
    })
    const endpoint = new URL(node.environment?.AWS_ENDPOINT_URL_S3 ?? '')
    expect(serviceNamed(endpoint.hostname).command).toContain(`-s3.port=${endpoint.port}`)
    for (const name of ['db', 's3'])
      expect(Object.keys(serviceNamed(name).networks).some((network) => network in node.networks)).toBe(true)
  })

  test('makes nginx the trusted proxy of the API nodes, with their addresses', () => {
    const proxy = serviceNamed('nginx')
    const servers = [...readDeploy('nginx/nginx.conf').matchAll(/^ +server (\S+) /gm)].map(([, at]) => at)
    const api = ['api-1', 'api-2'].map(serviceNamed)
    const addresses = api.map(({ networks }) => `${networks.front?.ipv4_address}:7878`)
    expect(servers).toEqual(addresses)
    for (const { command = [] } of api) {
      const { trustProxy, publicUrl } = flagsOf(command)
      expect(networksOf(trustProxy)).toEqual([proxy.networks.front?.ipv4_address])
      expect(publicUrlOf(publicUrl ?? '')).toBe(PUBLIC_URL)
    }
    const listens = [...readDeploy('nginx/nginx.conf').matchAll(/^ +listen (\d+)/gm)].map(([, port]) => port)
    expect(proxy.ports?.map((port) => port.split(':').at(-1))).toEqual(listens)
    expect(proxy.ports?.[0]).toMatch(/^127\.0\.0\.1:/)
  })

  test('refers only to what it defines, and waits for the health checks of services', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      expect(Object.keys(compose.networks), name).toEqual(
        expect.arrayContaining(Object.keys(service.networks)),
      )
      for (const volume of service.volumes ?? [])
        if (/^\w+:/.test(volume)) expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0])
        else if (volume.startsWith('./') && !volume.startsWith('./tls'))
          expect(existsSync(join(DEPLOY, volume.split(':')[0] ?? '')), volume).toBe(true)
      for (const [needed, { condition }] of Object.entries(service.depends_on ?? {}))
        if (condition === 'service_healthy')
          expect(
            serviceNamed(needed).image === 'rushes' || serviceNamed(needed).healthcheck,
            needed,
          ).toBeTruthy()
    }
    expect(compose.networks.data).toEqual({ internal: true })
    expect(Object.keys(serviceNamed('db').networks)).toEqual(['data'])
    expect(Object.keys(serviceNamed('s3').networks)).toEqual(['data'])
  })

  test('lets no service write outside its volumes or gain rights', () => {
    const services = Object.entries(compose.services)
    for (const [name, service] of services)
      expect(service, name).toMatchObject({
        // The content of a config is written into the container of s3.
        read_only: name !== 's3',
        tmpfs: expect.arrayContaining(['/tmp']),
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      })
    expect(services.flatMap(([name, { cap_add }]) => (cap_add ? [name] : []))).toEqual(['nginx', 's3'])
    // Not the rights by which a process leaves its container or sees the network of others.
    for (const [, { cap_add = [] }] of services)
      expect(['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID']).toEqual(
        expect.arrayContaining([...cap_add]),
      )
    expect(serviceNamed('db').user).toBe('postgres')
  })

  test('gives the only identity of the storage the only bucket', () => {
    const { identities } = JSON.parse(compose.configs.s3?.content ?? '')
    expect(identities).toHaveLength(1)
    expect(identities[0].credentials).toEqual([{ accessKey: 'c', secretKey: 'd' }])
    for (const action of identities[0].actions) expect(action).toMatch(/^\w+:rushes$/)
    expect(serviceNamed('s3-bucket').command?.[0]).toContain('s3.bucket.create -name rushes')
  })

  test('contains no secret, and does not start without them', () => {
    for (const name of [...Object.keys(SECRETS), 'PUBLIC_URL'])
      expect(() => readCompose({ ...SECRETS, PUBLIC_URL, [name]: '' })).toThrow(
        `${name}: Run ./make-env first`,
      )
  })
})

describe('make-env', () => {
  test('writes every variable of the compose file and a certificate once, readable only by the owner', async () => {
    const { place, folder, env } = await withSecrets()
    readCompose(env)
    expect(env).toMatchObject({ PUBLIC_URL })
    expect(new Set(Object.values(env)).size).toBe(5)
    for (const name of Object.keys(SECRETS)) expect(env[name]).toMatch(/^[0-9a-f]{48}$/)
    for (const name of ['.env', 'tls/tls.key']) expect(statSync(join(folder, name)).mode & 0o077).toBe(0)
    const shown = await bash(
      place,
      `openssl x509 -in ${folder}/tls/tls.crt -noout -ext subjectAltName -checkend 3600`,
    )
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('DNS:media.test') })
    expect(await bash(place, `${folder}/make-env https://other.test`)).toMatchObject({ code: 0, stderr: '' })
    expect(variablesIn(readFileSync(join(folder, '.env'), 'utf8'))).toEqual(env)
  })

  test('refuses to start without a URL', async () => {
    const ended = await bash(createPlace(), `${DEPLOY}/make-env`)
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/give the URL/) })
  })
})

describe('Dockerfile', () => {
  test('copies existing files, runs without root, and contains no secret', () => {
    const [build = [], image = []] = readDockerfile()
    const allowed = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    for (const { words } of build.filter(({ name }) => name === 'COPY'))
      for (const source of words.split(' ').slice(0, -1)) {
        expect(existsSync(join(ROOT, source)), source).toBe(true)
        expect(allowed).toMatch(new RegExp(`^!${source.replaceAll('.', '\\.')}$`, 'm'))
      }
    expect(allowed).toMatch(/^\*$/m)
    expect(image.findLast(({ name }) => name === 'USER')?.words).toBe('node')
    expect(readDeploy('Dockerfile')).not.toMatch(/PASSWORD|SECRET|_KEY|--mount/)
    const words = [...JSON.parse(finalInstruction('ENTRYPOINT')), ...JSON.parse(finalInstruction('CMD'))]
    expect(words[0]).toBe('rushes')
    expect(flagsOf(words.slice(1)).host).toBe('0.0.0.0')
    expect(healthCheck('').join(' ')).toContain(`port = ${finalInstruction('EXPOSE')}]`)
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
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const port = String((server.address() as AddressInfo).port)
    const mainProcess = join(place.home, 'cmdline')
    // With `init: true` it is not rushes itself.
    const words = ['/sbin/docker-init', '--', 'rushes', 'serve', ...flags]
    writeFileSync(mainProcess, `${words.map((word) => word.replace('<port>', port)).join('\0')}\0`)
    const [command = '', ...rest] = healthCheck(mainProcess)
    const { code } = await start(place, rest, { command, stdin: 'ignore' }).ended
    expect({ code, path }).toEqual({ code: 0, path: '/readyz' })
  })
})

const UNITS = ['rushes.service', 'rushes-worker@.service'] as const

describe('the systemd units', () => {
  const example = readDeploy('systemd/serve.env').replace(/^#([A-Z])/gm, '$1')

  test.each(UNITS)('%s: its flags, with those of serve.env, are those of rushes serve', (name) => {
    const [line = ''] = readUnit(name).get('ExecStart') ?? []
    const words = wordsOfUnit(line, variablesIn(example), '7901')
    // sh -c <script> rushes <flags>
    const flags = flagsOf(['serve', ...words.slice(4)])
    expect(flags).toMatchObject(
      name === 'rushes.service' ? { role: 'api', port: '7878' } : { role: 'worker', port: '7901' },
    )
    expect(flags.storage).toBe('s3://rushes/service')
  })

  test('differ in nothing but the role', () => {
    const [one, worker] = UNITS.map(readUnit)
    const differing = [...(one?.keys() ?? [])].filter(
      (key) => one?.get(key)?.join() !== worker?.get(key)?.join(),
    )
    expect(differing).toEqual(['Description', 'ExecStart'])
    expect(one?.get('TimeoutStopSec')).toEqual(['10'])
    expect(one?.get('KillMode')).toEqual(['mixed'])
  })

  test.skipIf(!hasSystemd).each(UNITS)(
    '%s: systemd accepts it, and finds it well protected',
    async (name) => {
      const place = createPlace()
      const file = join(place.folder, name.replace('@.', '@7901.'))
      cpSync(join(DEPLOY, 'systemd', name), file)
      expect(await bash(place, `systemd-analyze verify ${file}`)).toMatchObject({ code: 0, stderr: '' })
      // From 0, all protection, to 10.
      const rated = await bash(place, `systemd-analyze security --offline=true --threshold=20 ${file}`)
      expect(rated.code, rated.stdout).toBe(0)
      // With a GPU it is protected as before, except for these devices.
      mkdirSync(`${file}.d`)
      cpSync(join(DEPLOY, 'systemd/gpu.conf'), join(`${file}.d`, 'gpu.conf'))
      expect(await bash(place, `systemd-analyze verify ${file}`)).toMatchObject({ code: 0, stderr: '' })
      const shown = await bash(place, `systemd-analyze security --offline=true --threshold=25 ${file}`)
      expect(shown.code, shown.stdout).toBe(0)
      expect(shown.stdout).toMatch(/✗ PrivateDevices=/)
      expect(shown.stdout).toMatch(/DeviceAllow= .*device ACL with.*(nvidia|drm|kfd|special)/)
    },
  )
})

describe('docs/operations.md', () => {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')

  test('contains the statements that the compose file runs', () => {
    const [, sql = ''] = /```sql\n([^`]+)```/.exec(page) ?? []
    const [, run = ''] = /<<'END'\n([\s\S]+?)END/.exec(readDeploy('postgres/create-role.sh')) ?? []
    expect(run.replace(":'password'", "'…'")).toBe(sql)
  })

  test('restarts only nodes of the compose file', () => {
    const names = [...page.matchAll(/docker compose up .*--wait (\S+)$/gm)].map(([, name = '']) => name)
    expect(names).toEqual(['api-1', 'api-2'])
    for (const name of names) expect(serviceNamed(name).command).toContain('--role=api')
  })
})
