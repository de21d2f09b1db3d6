/** The tools of a session: each definition with the function that carries it out. */
import { definitionsFor, type ToolName } from '../../mcp/definitions.js'
import type { Answer, Call, Tools } from '../../mcp/tool.js'
import { type Finished, planBatch, runBatch } from './batch-tools.js'
import { createRun } from './create-tools.js'
import { followRuns, getRuns, listModels, listRuns, showRun } from './run-tools.js'
import type { Session } from './session.js'

export function toolsOf(session: Session): Tools {
  const finished: Finished = new Map()
  const calls: Readonly<Record<ToolName, (call: Call) => Promise<Answer>>> = {
    list_models: (call) => listModels(session, call),
    create_image: (call) => createRun(session, 'image', call),
    create_video: (call) => createRun(session, 'video', call),
    create_model_run: (call) => createRun(session, undefined, call),
    wait_run: (call) => followRuns(session, call, { isDownload: false }),
    get_run: (call) => getRuns(session, call),
    list_runs: (call) => listRuns(session, call),
    show_run: (call) => showRun(session, call),
    download_run: (call) => followRuns(session, call, { isDownload: true }),
    plan_batch: (call) => planBatch(session, finished, call),
    run_batch: (call) => runBatch(session, finished, call),
  }
  const facts = { maxRuns: session.maxRuns, isLocal: session.base.globals.local }
  return definitionsFor(facts).map((definition) => ({ definition, call: calls[definition.name] }))
}
