/**
 * The service in a process of its own, for tests that end it the hard way: `service-process <data> <deed> [script]`. It
 * says what it does, one line of JSON at a time. `start` starts and ends; `create` waits for SIGUSR2, then sends 20 creates
 * with each key that `script` names; anything else makes one run and stays.
 */
import { systemClock } from '../../src/host/clock.js'
import { createProcessEngine } from '../../src/service/engines/process.js'
import { createService } from '../../src/service/index.js'

const [, , dataFolder = '', deed = '', script = ''] = process.argv
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)

const engine = createProcessEngine({ script })

const service = await createService({
  dataFolder,
  databaseUrl: process.env.RUSHES_DATABASE_URL,
  engine,
  clock: systemClock,
  concurrency: 1,
  ephemeralKey: deed === 'render',
})

const create = (key: string | undefined, prompt: string) =>
  service.fetch({
    method: 'POST',
    url: new URL('http://localhost/api/v1/runs'),
    headers: { authorization: `Bearer ${key}` },
    body: Buffer.from(JSON.stringify({ model: 'rushes/preview-image', input: { prompt } })),
  })

if (deed === 'start') {
  say({ apiKey: service.apiKey ?? null })
  await service.close()
} else if (deed === 'create') {
  const told = new Promise((resolve) => process.once('SIGUSR2', resolve))
  // Signals alone keep no process alive.
  const alive = setInterval(() => {}, 1_000)
  say({ ready: true })
  await told
  clearInterval(alive)
  const keys = script.split(',')
  const creates = keys.flatMap((key) => Array.from({ length: 20 }, () => create(key, 'a fox')))
  const statuses = (await Promise.all(creates)).map(({ status }) => status)
  say({ statuses })
  await service.close()
} else {
  await service.listen({ host: '127.0.0.1', port: 0 })
  process.once('SIGINT', async () => {
    await service.close()
    say({ closed: true })
  })
  service.startRendering()
  const answer = await create(service.apiKey, 'hang')
  let text = ''
  for await (const chunk of answer.body) text += Buffer.from(chunk).toString()
  say({ id: JSON.parse(text).id })
}
