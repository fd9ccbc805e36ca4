"""Defines arguments and answers of the panels' tools."""

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.tools.person.plan_shapes import PlanRows, PlanRowsAnswer
from holdfast.tools.registry import Arguments
from holdfast.tools.review.shapes import ShowReviewAnswer

_MAX_TOKEN_CHARS = 200
_MAX_PATH_CHARS = 20_000
TOKEN = "The token that came beside the answer."


class PanelReview(Arguments):
    """Arguments of panel_review."""

    token: str | None = Field(None, max_length=_MAX_TOKEN_CHARS, description=TOKEN)
    session_path: str = Field("", max_length=_MAX_PATH_CHARS, description="session_path of the answer.")
    path: str = Field("", max_length=_MAX_PATH_CHARS, description="Path of the file, as the call gave it.")


class PanelReviewAnswer(ShowReviewAnswer):
    """Answer of panel_review: the review, without texts once it has ended."""

    is_open: bool = Field(description="somebody can still do something with it")
    can_decide: bool = Field(description="the token decides on exactly this")
    console_url: str | None = Field(None, description="its page in the console")


class PanelDecide(Arguments):
    """Arguments of panel_decide."""

    token: str = Field(max_length=_MAX_TOKEN_CHARS, description=TOKEN)
    shown_hash: str = Field(max_length=64, description="shown_hash of panel_review: what was on screen.")
    decision: Literal["approve", "reject", "revise"] = Field(description="Decision of the person.")
    hunks: list[str] | None = Field(None, description="Approve only the hunks with these hashes.")
    reason: str | None = Field(None, description="Reason for the agent.")


class PanelDecided(BaseModel):
    """Answer of panel_decide: the review after the decision, and what the agent is to be told."""

    review_id: str
    user_action: str
    message: str


class PanelPlan(PlanRows):
    """Arguments of panel_plan."""

    token: str | None = Field(None, max_length=_MAX_TOKEN_CHARS, description=TOKEN)


class PanelPlanAnswer(PlanRowsAnswer):
    """Answer of panel_plan: a page of the plan's rows."""

    can_decide: bool = Field(description="the token decides on exactly this")
    console_url: str | None = Field(None, description="its page in the console")


class PanelDecidePlan(Arguments):
    """Arguments of panel_decide_plan."""

    token: str = Field(max_length=_MAX_TOKEN_CHARS, description=TOKEN)
    plan_hash: str = Field(max_length=64, description="plan_hash of panel_plan: what was on screen.")
    decision: Literal["approve", "close"] = Field(description="close: nothing of the plan is to be carried out.")


class PanelDecidedPlan(BaseModel):
    """Answer of panel_decide_plan: the plan after the decision, and what the agent is to be told."""

    plan_id: str
    status: str
    message: str
