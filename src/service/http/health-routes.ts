/** For whoever runs the service: is the process alive, can it take requests? No key, no limit, and nothing about runs. */
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../rules/refusal.js'

export const HEALTH_PATH = '/healthz'
export const READY_PATH = '/readyz'

export interface HealthRoutes {
  /** Rejects, or says false, while requests cannot be taken: the database does not answer, or the service closes. */
  isReady(): Promise<boolean>
}

export async function addHealthRoutes(app: FastifyInstance, { isReady }: HealthRoutes): Promise<void> {
  app.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'))
  app.get(HEALTH_PATH, async () => ({ status: 'ok' }))
  app.get(READY_PATH, async () => {
    if (!(await isReady().catch(() => false))) throw new Refusal('not_ready')
    return { status: 'ready' }
  })
}
