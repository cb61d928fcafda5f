"""A model's own rate limiter is asked before every call, isolated and final alike."""

from __future__ import annotations

from langchain_core.rate_limiters import BaseRateLimiter

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import PROMPT, QUESTION, Reader, truthful


class Counting(BaseRateLimiter):
    """Lets everybody through and counts them."""

    def __init__(self) -> None:
        self.passed = 0

    def acquire(self, *, blocking: bool = True) -> bool:
        self.passed += 1
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        self.passed += 1
        return True


async def test_every_isolated_call_and_the_final_one_pass_the_models_rate_limiter() -> None:
    limiter = Counting()
    chain = create_robust_documents_chain(Reader(rate_limiter=limiter), PROMPT, aggregation="keyword", final="always")
    given = {"input": QUESTION, "context": truthful(5)}
    answer = chain.invoke(given)
    assert limiter.passed == 6
    assert await chain.ainvoke(given) == answer
    assert limiter.passed == 12
