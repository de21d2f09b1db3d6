/**
 * Kills the nodes of a service with `kill -9` at random moments, while their runs are created, polled and fetched at a
 * server that costs money. Then counts the requests of each run.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { isReady, urlOf } from '../support/binary.js'
import { createPlace, type Running, rushes, start, until, withStateOfCli } from '../support/index.js'
import { createVideosServer } from '../support/model-servers/videos.js'
import { hasPostgres, temporaryDatabase } from '../support/postgres.js'
import { PROOF } from '../support/proof.js'

/** Of each test. */
const KILLS = 5 * PROOF
const RUNS = 2 * KILLS
const MAX_ANSWER_MS = 150
const MAX_PAUSE_MS = 1_500

/** `RUSHES_DATABASE_URL`: undefined with SQLite. */
async function killNodes(nodes: number, RUSHES_DATABASE_URL: string | undefined) {
  const server = await createVideosServer()
  const place = withStateOfCli(createPlace()).with({ RUSHES_DATABASE_URL })
  const models = join(place.folder, 'models.yaml')
  writeFileSync(
    models,
    `name: acme/wan
kind: video
engine: { type: videos, url: "${server.url}/v1" }
price: { run: 1 }
cost: { run: 0.4, currency: USD }
concurrency: 16
`,
  )
  const launch = (port: string): Running =>
    start(place, ['serve', '--json', '--no-console', '--port', port, '--models', models], { stdin: 'ignore' })
  const running: { process: Running; readonly url: string; readonly apiKey: string }[] = []
  for (let count = 0; count < nodes; count++) {
    const process = launch('0')
    const url = await urlOf(process)
    const { api_key: apiKey = '' } = JSON.parse(process.printed.stdout.split('\n')[0] ?? '{}')
    running.push({ process, url, apiKey })
  }
  const apiKey = running.find((each) => each.apiKey !== '')?.apiKey ?? ''
  await rushes(place, ['admin', 'key', 'set', '1', '--rate', '10000/10s'])

  const ids: string[] = []
  async function create(): Promise<void> {
    const after = sleep(Math.random() * MAX_ANSWER_MS)
    server.fault('POST /v1/videos', { after })
    const body = JSON.stringify({ model: 'acme/wan', input: { prompt: `fox ${ids.length}` } })
    // A node may be dead at this moment: a repeated key creates no second run.
    const headers = {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': `fox-${ids.length}`,
    }
    const id = await until('an accepted run', async () => {
      for (const { url } of running) {
        const answer = await fetch(`${url}/api/v1/runs`, { method: 'POST', headers, body }).catch(
          () => undefined,
        )
        if (answer?.status === 201) return ((await answer.json()) as { id: string }).id
      }
      return undefined
    })
    ids.push(id)
  }

  for (let kill = 0; kill < KILLS; kill++) {
    while (ids.length < (RUNS * (kill + 1)) / KILLS) await create()
    await sleep(Math.random() * MAX_PAUSE_MS)
    const node = running[kill % nodes]
    if (node === undefined) continue
    node.process.kill('SIGKILL')
    await node.process.ended
    node.process = launch(new URL(node.url).port)
    if (nodes === 1) await until('the node', () => isReady(node.url))
  }
  const ends = await Promise.all(ids.map((id) => endOf(running, apiKey, id)))
  const prompts = server.jobs.map(({ fields }) => String(fields.prompt))
  const verified = JSON.parse((await rushes(place, ['admin', 'verify', '--json'])).stdout)
  for (const { process } of running) process.kill('SIGTERM')
  await Promise.all(running.map(({ process }) => process.ended))
  return {
    kills: KILLS,
    runs: ids.length,
    creates: server.count('POST /v1/videos'),
    /** Prompts that were sent more than once. */
    repeated: prompts.filter((prompt, index) => prompts.indexOf(prompt) !== index),
    succeeded: ends.filter((end) => end === 'succeeded').length,
    /** Runs whose answer was lost by a kill. */
    unknown: ends.filter((end) => end === 'outcome_unknown').length,
    others: ends.filter((end) => end !== 'succeeded' && end !== 'outcome_unknown'),
    problems: verified.problems,
    named: verified.outcome_unknown.length,
  }
}

/** Resolves with `succeeded`, or with the code of the failure. */
const endOf = (nodes: readonly { readonly url: string }[], apiKey: string, id: string): Promise<string> =>
  until(`the end of ${id}`, async () => {
    for (const { url } of nodes) {
      const answer = await fetch(`${url}/api/v1/runs/${id}`, {
        headers: { authorization: `Bearer ${apiKey}` },
      }).catch(() => undefined)
      if (answer?.status !== 200) continue
      const { status, error } = (await answer.json()) as { status: string; error: { code: string } | null }
      return status === 'succeeded' ? status : status === 'failed' ? error?.code : undefined
    }
    return undefined
  })

test.each<[string, number]>([
  ['its service on SQLite is', 1],
  ...(hasPostgres ? [['two nodes on PostgreSQL are', 2] as [string, number]] : []),
])('a paid run is sent once while %s killed at random moments', async (_, nodes) => {
  const database = nodes === 1 ? undefined : await temporaryDatabase()
  const { repeated, others, problems, named, ...tally } = await killNodes(nodes, database)
  process.stdout.write(`jobs of ${nodes} killed nodes: ${JSON.stringify(tally)}\n`)
  expect({ repeated, others, problems }).toEqual({ repeated: [], others: [], problems: [] })
  expect(named).toBe(tally.unknown)
  expect([tally.succeeded + tally.unknown, tally.succeeded > 0]).toEqual([tally.runs, true])
})
