import type { ComponentChildren } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'

export interface Tab {
  readonly name: string
  readonly render: () => ComponentChildren
}

export interface TabsProps {
  /** What they are about, for screen readers. */
  readonly label: string
  readonly tabs: readonly Tab[]
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 }

/** One of several views of the same thing; the arrows change it. */
export function Tabs({ label, tabs }: TabsProps) {
  const [chosen, setChosen] = useState(0)
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const choose = (index: number) => {
    setChosen(index)
    const buttons = list.current?.querySelectorAll<HTMLButtonElement>('[role="tab"]')
    buttons?.[index]?.focus()
  }
  return (
    <div class="tabs">
      <div
        role="tablist"
        aria-label={label}
        class="tab-list"
        ref={list}
        onKeyDown={(event) => {
          const step = STEPS[event.key]
          if (step !== undefined) choose((chosen + step + tabs.length) % tabs.length)
        }}
      >
        {tabs.map(({ name }, index) => (
          <button
            key={name}
            type="button"
            role="tab"
            class="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${chosen}`}>
        {tabs[chosen]?.render()}
      </div>
    </div>
  )
}
