/**
 * The service under load, in real processes, while it and its renderers are killed with -9 at random: every run that was
 * accepted ends, charged once, and its output can be downloaded. `SOAK_SECONDS=600 npm run proof -- service`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createPlace } from '../support/binary.js'
import { ask, endOf, IMAGE_OF_A_FOX, VIDEO_OF_A_FOX } from '../support/proof/clients.js'
import { audit, prepareData } from '../support/proof/service-data.js'
import {
  countOf,
  createsAt,
  enginesOf,
  killProcess,
  serveWords,
  startService,
  stop,
} from '../support/proof/service-runs.js'

const SECONDS = Number(process.env.SOAK_SECONDS ?? 60)
const KEYS = 12
/** Leaves its output in two steps, so that a kill finds it half written. */
const ENGINE =
  'read -r input; sleep 0.1; echo half > "$RUSHES_OUTPUT_DIR/film.txt"; sleep 0.2; echo "$RUSHES_RUN_ID" > "$RUSHES_OUTPUT_DIR/film.txt"'

it('no accepted run is lost, whatever is killed', async () => {
  const place = createPlace()
  const data = join(place.home, 'data')
  const [keys = []] = await prepareData(place, data, [KEYS])
  const words = (port: string | number) => serveWords(data, port, '--engine', `video=${ENGINE}`)
  let { service, url } = await startService(place, words(0))
  const { port } = new URL(url)

  const created = createsAt(url, keys)
  const kills = { service: 0, renderer: 0 }
  const endAt = performance.now() + SECONDS * 1_000
  const going = () => performance.now() < endAt
  const customers = keys.map(async (_, at) => {
    for (let turn = at; going(); turn++) {
      created.send(turn % 2 === 0 ? IMAGE_OF_A_FOX : VIDEO_OF_A_FOX)
      await sleep(600 + Math.random() * 800)
    }
  })
  const killer = async () => {
    while (going()) {
      await sleep(500 + Math.random() * 2_500)
      const renderers = enginesOf(place)
      const victim = renderers[Math.floor(Math.random() * renderers.length)]
      if (Math.random() < 0.6 && victim !== undefined) {
        if (killProcess(victim)) kills.renderer++
        continue
      }
      service.kill('SIGKILL')
      await service.ended
      kills.service++
      service = (await startService(place, words(port))).service
    }
  }
  await Promise.all([...customers, killer()])
  await created.settled()

  const ends: string[] = []
  const urls = new Set<string>()
  for (const { id, client } of created.accepted) {
    const { status, error, output } = await endOf(client, id)
    ends.push(error?.code ?? status)
    for (const each of output?.urls ?? []) {
      expect(urls).not.toContain(each)
      urls.add(each)
      const { bytes } = await ask(client, each)
      if (each.endsWith('.txt')) expect(bytes.toString()).toBe(`${id}\n`)
      else expect(bytes.toString('latin1', 1, 4)).toBe('PNG')
    }
  }
  process.stdout.write(
    `${SECONDS} s, killed: ${JSON.stringify(kills)}, creates: ${countOf(created.outcomes)}, ends: ${countOf(ends)}\n`,
  )
  expect(created.outcomes.filter((outcome) => outcome.startsWith('5'))).toEqual([])
  expect(ends.filter((end) => end !== 'succeeded' && end !== 'renderer_crashed')).toEqual([])
  await stop(service, place)
  const accepted = created.accepted.map(({ id }) => id)
  await audit(place, data, accepted)
  expect(readdirSync(join(data, 'work'))).toEqual([])
})
