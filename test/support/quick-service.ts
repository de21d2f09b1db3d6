/**
 * `rushes serve` for tests of the real binary that do not check outputs: one service for many tests. It renders
 * nothing.
 */
import { createNetwork } from '../../src/host/undici.js'
import { afterFile } from './after-file.js'
import { createPlace, type Place, type Service, serve, withStateOfCli } from './binary.js'
import { createManualClock } from './clock.js'
import { ONE_PIXEL_PNG } from './engines.js'
import { addAccount } from './service.js'

export const onePixel = `echo ${ONE_PIXEL_PNG.toString('base64')} | base64 -d > "$RUSHES_OUTPUT_DIR/a.png"`

/** Engine options for `serve`: images of one pixel, ready after a number of seconds, and videos that never end. */
export const quickEngines = (imageAfterS = 0): readonly string[] => [
  '--engine',
  `image=sleep ${imageAfterS}; ${onePixel}`,
  '--engine',
  'video=sleep 600',
  // Images need not wait for videos.
  '--concurrency',
  '64',
]

export const serveQuickly = (words: readonly string[] = quickEngines()): Promise<Service> =>
  serve(createPlace(), words)

/** Creates a user with a separate home, folder and key, since each key has its own rate limit. */
export async function personAt(service: Service): Promise<Place> {
  const place = withStateOfCli(createPlace())
  const data = { dataFolder: service.data, databaseUrl: undefined, clock: createManualClock() }
  const { RUSHES_BASE_URL, RUSHES_IMAGE_MODEL, RUSHES_VIDEO_MODEL } = service.env
  return place.with({
    RUSHES_BASE_URL,
    RUSHES_IMAGE_MODEL,
    RUSHES_VIDEO_MODEL,
    RUSHES_API_KEY: await addAccount(data, place.home),
  })
}

/** The service of this user for `created` and `runOf`: over its port, without the program. */
export function overPort({ env }: Place) {
  const { fetch, close } = createNetwork({ env: {}, clock: createManualClock() })
  afterFile(close)
  return { fetch, apiKey: env.RUSHES_API_KEY ?? '', baseUrl: env.RUSHES_BASE_URL ?? '' }
}
